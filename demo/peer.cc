#include "peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace demo {
namespace {

/// The child's side: Python, with the socket for input and output.
[[noreturn]] void become_python(int socket, const char* threads) {
    ::dup2(socket, STDIN_FILENO);
    ::dup2(socket, STDOUT_FILENO);
    if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    ::execlp("python3", "python3", KVJIT_DEMO_PEER, threads, static_cast<char*>(nullptr));
    ::_exit(127);
}

}  // namespace

Peer::Peer(int threads) {
    int sockets[2];
    if (threads == 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return;
    const std::string count = std::to_string(threads);
    process_ = ::fork();
    if (process_ == 0) become_python(sockets[1], count.c_str());
    ::close(sockets[1]);
    socket_ = sockets[0];
    name_ = read_line();
}

Peer::~Peer() {
    if (socket_ >= 0) ::close(socket_);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

double Peer::attend(const RaggedBatch& batch) {
    if (name_.empty()) return 0;
    std::string lengths;
    for (std::int64_t b = 0; b < batch.sequences(); ++b) {
        const std::int64_t rows = batch.seqstarts[b + 1] - batch.seqstarts[b];
        lengths += std::to_string(rows) + " " + std::to_string(batch.keys(b)) + " ";
    }
    lengths += "\n";
    ::send(socket_, lengths.data(), lengths.size(), MSG_NOSIGNAL);
    return std::strtod(read_line().c_str(), nullptr);
}

std::string Peer::read_line() {
    std::string line;
    for (char next; ::recv(socket_, &next, 1, 0) == 1 && next != '\n';) line += next;
    return line;
}

}  // namespace demo

/* Which kvjit these headers are of. The three numbers stand here alone: CMake and the package files read them. */
#ifndef KVJIT_VERSION_H
#define KVJIT_VERSION_H

#define KVJIT_VERSION_MAJOR 0
#define KVJIT_VERSION_MINOR 1
#define KVJIT_VERSION_PATCH 0

#define KVJIT_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
#define KVJIT_VERSION_TEXT_OF(major, minor, patch) KVJIT_VERSION_TEXT(major, minor, patch)

/* "0.1.0" */
#define KVJIT_VERSION KVJIT_VERSION_TEXT_OF(KVJIT_VERSION_MAJOR, KVJIT_VERSION_MINOR, KVJIT_VERSION_PATCH)

/* 100 for 0.1.0, 10203 for 1.2.3: one number that grows, for #if and for comparing with kvjit_version_number(). */
#define KVJIT_VERSION_NUMBER (KVJIT_VERSION_MAJOR * 10000 + KVJIT_VERSION_MINOR * 100 + KVJIT_VERSION_PATCH)

#endif

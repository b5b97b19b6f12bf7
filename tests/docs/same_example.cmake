# cmake -DREADME=file -DEXAMPLE=file -P same_example.cmake: the document holds the example, to the letter.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "```cpp\n${example}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${README} does not hold ${EXAMPLE} as its cpp block")
endif()

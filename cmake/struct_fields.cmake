# cmake -DHEADERS=kvjit.h,blocks.h -DOUT=file -P struct_fields.cmake: a row KVJIT_STRUCT(name, &name::field, ...) for each
# struct of the headers, in their order.
string(REPLACE "," ";" HEADERS "${HEADERS}")
set(text "")
foreach(header IN LISTS HEADERS)
  file(READ ${header} one)
  string(APPEND text "${one}")
endforeach()
string(FIND "${text}" "/*" begin)
while(NOT begin EQUAL -1) # without comments
  string(SUBSTRING "${text}" 0 ${begin} before)
  string(SUBSTRING "${text}" ${begin} -1 after)
  string(FIND "${after}" "*/" end)
  math(EXPR end "${end} + 2")
  string(SUBSTRING "${after}" ${end} -1 after)
  set(text "${before}${after}")
  string(FIND "${text}" "/*" begin)
endwhile()
string(REPLACE ";" "@" text "${text}")                 # to CMake ; and brackets are lists
string(REGEX REPLACE "\\[[^]]*\\]" "" text "${text}")  # arrays' extents
string(REGEX MATCHALL "typedef struct [a-z_]+ {[^{}]*}" structs "${text}")
set(rows "")
foreach(struct IN LISTS structs)
  string(REGEX REPLACE "typedef struct ([a-z_]+) .*" "\\1" name "${struct}")
  string(APPEND rows "KVJIT_STRUCT(${name}")
  # A declaration ends with its name, except for a pointer to a function: (*name)(...).
  string(REGEX MATCHALL "[a-z_0-9]+@|\\(\\*[a-z_0-9]+\\)\\([^@]*@" fields "${struct}")
  foreach(field IN LISTS fields)
    string(REGEX MATCH "[a-z_0-9]+" field "${field}")
    string(APPEND rows ", &${name}::${field}")
  endforeach()
  string(APPEND rows ")\n")
endforeach()
file(WRITE ${OUT} "${rows}")

# cmake -DROOT=templates -DOUT=file -P embed_templates.cmake: every template as a row of an array of {path, text}.
# With its length ("sv"), which compilers would count in steps that they limit.
file(GLOB_RECURSE paths RELATIVE ${ROOT} ${ROOT}/*.h ${ROOT}/*.cc ${ROOT}/*.cu)
list(SORT paths)
set(rows "")
foreach(path IN LISTS paths)
  file(READ ${ROOT}/${path} text)
  string(APPEND rows "{\"${path}\", R\"kvjit(${text})kvjit\"sv},\n")
endforeach()
file(WRITE ${OUT} "${rows}")

# cmake -DROOT=templates -DOUT=file -P embed_templates.cmake: every template as a row of an array of {path, text}.
file(GLOB_RECURSE paths RELATIVE ${ROOT} ${ROOT}/*.h ${ROOT}/*.cc ${ROOT}/*.cu)
list(SORT paths)
set(rows "")
foreach(path IN LISTS paths)
  file(READ ${ROOT}/${path} text)
  string(APPEND rows "{\"${path}\", R\"kvjit(${text})kvjit\"},\n")
endforeach()
file(WRITE ${OUT} "${rows}")

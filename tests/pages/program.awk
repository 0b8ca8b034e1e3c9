# Writes a program that compiles and runs the calls of pages:
#   awk -v root=<source tree> -v out=program.cpp -f program.awk PAGE...
# Its calls are what stands between ` in table columns with the title "Pleat", and the blocks behind a line
# "<!-- compiled -->" or "<!-- compiled, not run -->". Each row and each block is a function of its own, with the
# tensors of names.h. A name alone is a function of x, or a type. What names a file in "data/" or a GPU is compiled,
# not run. Errors give page and line.

function begin(line) {
  if (started++) return
  printf "struct Call%d : Names {\nvoid run() {\n", ++calls >out
  place[calls] = page ":" line
}
function end() {
  if (started) print "}\n};" >out
  started = 0
}
# What this machine perhaps cannot run is compiled alone.
function guarded(code) { return code ~ /"data\/|cuda/ ? "if (never) { " code "; }" : code }
function statement(code, line) {
  begin(line)
  if (code ~ /^[a-z][a-z_0-9]*$/) code = code "(x)"
  else if (code ~ /^([a-z]+::)?[A-Z][A-Za-z0-9]*$/) code = "(void)sizeof(" code ")"
  printf "#line %d \"%s\"\n%s;\n", line, page, guarded(code) >out
}

BEGIN { print "#include \"pleat/tests/pages/names.h\"\n" >out }
FNR == 1 { page = FILENAME; sub(root "/", "", page); block = 0 }
/^```/ {
  if (block == 2) {
    if (alone) print "}" >out
    end()
  } else if (block == 1 && alone) {
    begin(FNR)
    print "if (never) {" >out
  }
  block = block == 1 ? 2 : 0
  next
}
block == 2 {
  begin(FNR)
  printf "#line %d \"%s\"\n%s\n", FNR, page, guarded($0) >out
}
/^<!-- compiled(, not run)? -->$/ { block = 1; alone = /not run/ }
!/^\|/ { in_table = column = 0; next }
{
  gsub(/\\\|/, "\001")
  cells = split($0, cell, "|")
  if (!in_table++) {
    for (i = 1; i <= cells; ++i) if (cell[i] == " Pleat ") column = i
    next
  }
  if (!column) next
  rest = cell[column]
  while (match(rest, /`[^`]+`/)) {
    code = substr(rest, RSTART + 1, RLENGTH - 2)
    rest = substr(rest, RSTART + RLENGTH)
    gsub(/\001/, "|", code)
    statement(code, FNR)
  }
  end()
}
END {
  print "int main() {\n  int failed = 0;" >out
  for (i = 1; i <= calls; ++i) printf "  failed += Names::fails<Call%d>(\"%s\");\n", i, place[i] >out
  printf "  std::printf(\"%%d of %d rows and blocks failed\\n\", failed);\n  return failed;\n}\n", calls >out
}

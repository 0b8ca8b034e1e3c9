# Follows the links of pages: awk -v root=<source tree> -f links.awk PAGE...
# A link in a page names a file or folder of the source tree, and behind # a heading of the page that it names, in the
# form that GitHub gives it. Links into the web are left alone. Fails with page and line of each that leads nowhere.

function folder_of(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/)) : "" }
# "docs/how_to/../a.md" as "docs/a.md".
function plain(path) {
  while (match(path, /[^\/.]+\/\.\.\//)) path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
  return path
}
# The anchor of a heading: small letters, hyphens for blanks, nothing for other ASCII characters.
function anchor(heading) {
  gsub(/[]!-,.\/:-@[\\^`{|}~]/, "", heading)
  gsub(/ /, "-", heading)
  return tolower(heading)
}

FNR == 1 { page = FILENAME; sub("^" root "/", "", page); code = 0; pages[page] }
/^```/ { code = !code; next }
code { next }
/^#+ / {
  heading = $0
  sub(/^#+ /, "", heading)
  name = page "#" anchor(heading)
  while (name in anchors) name = name "-1"
  anchors[name]
}
{
  rest = $0
  gsub(/`[^`]*`/, "", rest)  # a lambda is no link
  while (match(rest, /\]\([^)]*\)/)) {
    link = substr(rest, RSTART + 2, RLENGTH - 3)
    rest = substr(rest, RSTART + RLENGTH)
    if (link ~ /^[a-z]+:/) continue
    to[++links] = link ~ /^#/ ? page link : plain(folder_of(page) link)
    place[links] = page ":" FNR
  }
}
END {
  for (i = 1; i <= links; ++i) {
    file = to[i]
    sub(/#.*/, "", file)
    if (!(file in exists)) exists[file] = system("test -e '" root "/" file "'") == 0
    if (!exists[file]) problem = "there is no " file
    else if (to[i] ~ /#/ && !(to[i] in anchors)) problem = "no heading of that name: " to[i]
    else continue
    print place[i] ": " problem
    failed = 1
  }
  if (links < 100) {
    print "only " links + 0 " links were found"
    failed = 1
  }
  exit failed
}

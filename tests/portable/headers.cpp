// Public headers between macros that <windows.h> defines for other compilers than g++. Headers of the standard library
// come first: those of Windows' compilers take care of themselves.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <deque>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#define max(a, b) (((a) > (b)) ? (a) : (b))
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define near
#define far
#define small char
#define hyper long
#define interface struct
#define ERROR 0
#define DELETE 0x10000
#define IN
#define OUT
#define OPTIONAL
#define TRUE 1
#define FALSE 0
#define STRICT 1
#define CONST const
#define VOID void
#define RGB(r, g, b) ((r) | (g) << 8 | (b) << 16)
#define GetObject GetObjectA
#define LoadImage LoadImageA
#define DrawText DrawTextA
#define SendMessage SendMessageA
#define CreateFile CreateFileA
#define DeleteFile DeleteFileA
#define GetMessage GetMessageA

#include <pleat/pleat.h>
#include <pleat/dist/dist.h>

pleat::Tensor largest(const pleat::Tensor& x) { return pleat::max(x) - pleat::min(x); }

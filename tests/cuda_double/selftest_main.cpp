#define CATCH_CONFIG_MAIN
#include "pleat/tests/catch.h"

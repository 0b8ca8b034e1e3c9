#pragma once

// All of dist/: a library of its own (pleat::dist), so pleat.h does not include it.

#include "pleat/dist/collectives.h"
#include "pleat/dist/communicator.h"
#include "pleat/dist/data_parallel.h"
#include "pleat/dist/init.h"
#include "pleat/dist/sharded_optimizer.h"
#include "pleat/dist/sync_batch_norm.h"

#pragma once

/// All operators, for programs that use LibTorch: docs/operators/.
#include "seqconv/ops/cumulative_average.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/short_conv.h"
#include "seqconv/ops/talk.h"

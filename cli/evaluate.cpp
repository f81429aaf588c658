#include "program.h"
namespace seqconv::cli {
void add_evaluate(Program& program) {}
}  // namespace seqconv::cli

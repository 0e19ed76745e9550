#include "host/queue/message.hpp"

namespace sluice::queue {

std::string_view to_string(Half half) { return half == Half::dlq ? "DLQ" : "STANDARD"; }

}  // namespace sluice::queue

#include "host/queue/message.hpp"

namespace sluice::queue {

std::string_view to_string(QueueType type) { return type == QueueType::dlq ? "DLQ" : "STANDARD"; }

}  // namespace sluice::queue

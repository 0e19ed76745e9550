#pragma once

#include <memory>

#include "host/queue/sender.hpp"

namespace sluice::queue {

/// How a queue's messages are deduplicated whose senders say nothing about it. A value.
struct DedupRules {
  bool by_content = false;         ///< messages of the same body count as duplicates
  Duration window = kDedupWindow;  ///< in place of the default one

  bool any() const { return by_content || window != kDedupWindow; }
};

/// The deduplication id that a message of this body has by its content: the SHA-256 of the body alone, as SQS has it.
std::string content_dedup_id(std::string_view body);

/// Fills in what a message leaves open: a deduplication id out of its body where it has none, and the window.
void fill_in(NewMessage& message, const DedupRules& rules);

/// A sender that fills in what its messages leave open. Without rules it is `sender` itself.
std::unique_ptr<Sender> deduplicating(std::unique_ptr<Sender> sender, const DedupRules& rules);

}  // namespace sluice::queue

#include "host/queue/effects.hpp"

#include <array>
#include <boost/algorithm/string/trim_all.hpp>
#include <set>
#include <utility>

#include "base/text/utf8.hpp"

namespace sluice::queue {

namespace {

std::size_t bytes_of(const ItemWrite& write) {
  return write.item.size() + write.update.size() + write.condition.size() + write.values.size();
}

std::size_t bytes_of(const SqlWrite& write) {
  std::size_t bytes = write.statement.size();
  for (const SqlValue& value : write.parameters) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      bytes += text->size();
    } else if (const auto* blob = std::get_if<SqlBlob>(&value)) {
      bytes += blob->bytes.size();
    } else {
      bytes += sizeof(std::int64_t);
    }
  }
  return bytes;
}

std::optional<Error> refused_messages(const Effects& effects) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const EmittedMessage& emitted : effects.messages) {
    if (emitted.message.id.empty()) {
      return Error(ErrorCode::invalid, "a message to queue " + emitted.queue + " has no id; give it one");
    }
    if (effects.messages.size() > 1 && !seen.emplace(emitted.queue, emitted.message.id).second) {
      return Error(ErrorCode::invalid, "message " + emitted.message.id + " is sent to queue " + emitted.queue +
                                           " twice; send it once, or give the second an id of its own");
    }
  }
  return std::nullopt;
}

constexpr std::size_t kMostShown = 200;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Those that count towards kMostEffectBytes.
std::size_t effect_bytes(const Effects& effects) {
  std::size_t bytes = effects.key ? effects.key->key.size() + effects.key->result.size() : 0;
  for (const EmittedMessage& emitted : effects.messages) {
    bytes += emitted.message.id.size() + content_bytes(emitted.message);
  }
  for (const EffectWrite& write : effects.writes) {
    bytes += std::visit([](const auto& one) { return bytes_of(one); }, write.write);
  }
  return bytes;
}

/// With one space for each run of white space.
std::string on_one_line(std::string_view text) {
  return boost::algorithm::trim_fill_copy_if(std::string(text), " ", is_space);
}

}  // namespace

std::string_view to_string(ItemAction action) {
  constexpr std::array<std::string_view, 4> kNames{"put", "update", "delete", "check"};
  return kNames.at(static_cast<std::size_t>(action));
}

std::size_t effect_actions(const Effects& effects) {
  // The end of the message itself is one action.
  std::size_t actions = 1 + effects.messages.size() + effects.writes.size() + (effects.key ? 1 : 0);
  for (const EmittedMessage& emitted : effects.messages) {
    actions += (emitted.message.dedup_id.empty() ? 0 : 1) + (emitted.message.unique_key.empty() ? 0 : 1);
  }
  return actions;
}

std::optional<Error> refused_effects(const Effects& effects) {
  const std::size_t actions = effect_actions(effects);
  if (actions > kMostEffects) {
    return Error(ErrorCode::invalid, "a transaction carries " + std::to_string(kMostEffects) + " actions and this is " +
                                         std::to_string(actions) +
                                         ", the end of its own message among them; spread the work over several "
                                         "messages");
  }
  if (const std::size_t bytes = effect_bytes(effects); bytes > kMostEffectBytes) {
    return Error(ErrorCode::invalid, "a transaction carries " + std::to_string(kMostEffectBytes) +
                                         " bytes and this is " + std::to_string(bytes) +
                                         "; keep large values elsewhere and write where they lie");
  }
  return refused_messages(effects);
}

std::string name_of(const EffectWrite& write, std::size_t number) {
  return write.label.empty() ? "write " + std::to_string(number + 1) : "write \"" + write.label + "\"";
}

std::string name_of(const EmittedMessage& emitted) {
  return (emitted.made_id ? "the message" : "message " + emitted.message.id) + " to queue " + emitted.queue;
}

Error taken_id() {
  return {ErrorCode::duplicate_id, "a message of that id is there already; give it another id, or leave it out"};
}

Error taken_key() {
  return {ErrorCode::conflict, "its idempotency key is held by another message by now; the next attempt finds it done"};
}

std::string refused_condition(std::string_view found, std::string_view asked, OnRefusal on_refusal) {
  std::string words(found);
  if (const std::string line = on_one_line(asked); !line.empty()) {
    words += ": " + std::string(cut_utf8(line, kMostShown)) + (line.size() > kMostShown ? "..." : "");
  }
  return words + (on_refusal == OnRefusal::reject
                      ? "; mend the data or the condition, then redrive the message"
                      : "; mend the data or the condition before the attempts run out, or stage the write with "
                        "otherwise_reject() where another attempt cannot help");
}

}  // namespace sluice::queue

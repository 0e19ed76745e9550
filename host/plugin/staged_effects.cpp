#include "host/plugin/staged_effects.hpp"

#include <exception>

#include "base/text/utf8.hpp"
#include "base/uuid.hpp"

namespace sluice::plugin {
namespace {

static_assert(detail::EffectLimits::kMostActions == queue::kMostEffects);
static_assert(detail::EffectLimits::kMostBytes == queue::kMostEffectBytes);

constexpr std::size_t kRefusalLimit = 1024;

std::string copy(sluice_string text) { return std::string(detail::view(text)); }

queue::Priority priority_of(sluice_priority priority) {
  switch (priority) {
    case SLUICE_PRIORITY_CRITICAL:
      return queue::Priority::critical;
    case SLUICE_PRIORITY_HIGH:
      return queue::Priority::high;
    case SLUICE_PRIORITY_LOW:
      return queue::Priority::low;
    default:
      return queue::Priority::normal;
  }
}

void read_message(const sluice_effect_message& from, const EffectRules& rules, queue::EmittedMessage& emitted) {
  emitted.queue = copy(from.queue);
  emitted.made_id = from.id.size == 0;
  queue::NewMessage& message = emitted.message;
  message.id = emitted.made_id ? make_uuid_v7(*rules.random, rules.clock->wall_now()) : copy(from.id);
  message.body = copy(from.body);
  if (from.content_type.size > 0) {
    message.content_type = copy(from.content_type);
  }
  for (std::size_t i = 0; i < from.attribute_count; ++i) {
    message.attributes.insert_or_assign(copy(from.attributes[i].name), copy(from.attributes[i].value));
  }
  message.group = copy(from.group);
  message.delay = Duration(from.delay);
  message.priority = priority_of(from.priority);
  message.dedup_id = copy(from.dedup_id);
  if (from.dedup_window > 0) {
    message.dedup_window = Duration(from.dedup_window);
  }
}

queue::OnRefusal on_refusal(sluice_on_refusal what) {
  return what == SLUICE_REFUSED_REJECT ? queue::OnRefusal::reject : queue::OnRefusal::retry;
}

queue::ItemAction action_of(sluice_item_action action) {
  switch (action) {
    case SLUICE_ITEM_PUT:
      return queue::ItemAction::put;
    case SLUICE_ITEM_UPDATE:
      return queue::ItemAction::update;
    case SLUICE_ITEM_DELETE:
      return queue::ItemAction::remove;
    default:
      return queue::ItemAction::check;
  }
}

queue::EffectWrite read_item(const sluice_effect_item& from) {
  queue::ItemWrite write{.action = action_of(from.action),
                         .table = copy(from.table),
                         .item = copy(from.item),
                         .update = copy(from.update),
                         .condition = copy(from.condition),
                         .names = {},
                         .values = copy(from.values)};
  for (std::size_t i = 0; i < from.name_count; ++i) {
    write.names.insert_or_assign(copy(from.names[i].name), copy(from.names[i].value));
  }
  return {std::move(write), copy(from.label), on_refusal(from.on_refusal)};
}

queue::SqlValue read_value(const sluice_sql_value& value) {
  switch (value.type) {
    case SLUICE_SQL_INTEGER:
      return value.integer;
    case SLUICE_SQL_REAL:
      return value.real;
    case SLUICE_SQL_TEXT:
      return copy(value.bytes);
    case SLUICE_SQL_BLOB:
      return queue::SqlBlob{copy(value.bytes)};
    default:
      return std::monostate();
  }
}

void read_sql(const sluice_effect_sql& from, queue::EffectWrite& effect) {
  effect.label = copy(from.label);
  effect.on_refusal = on_refusal(from.on_refusal);
  auto& write = effect.write.emplace<queue::SqlWrite>();
  write.statement = copy(from.statement);
  write.parameters.reserve(from.parameter_count);
  for (std::size_t i = 0; i < from.parameter_count; ++i) {
    write.parameters.push_back(read_value(from.parameters[i]));
  }
  if (from.rows >= 0) {
    write.rows = from.rows;
  }
}

}  // namespace

template <typename Stage>
const char* StagedEffects::stage(Stage stage) noexcept {
  try {
    if (!staging_) {
      staging_.emplace(rules_);
    }
    const std::string why = stage(*staging_);
    if (why.empty()) {
      return nullptr;
    }
    staging_->last = clean_utf8(why, kRefusalLimit);
    if (staging_->refusal.empty()) {
      staging_->refusal = staging_->last;
    }
    return staging_->last.c_str();
  } catch (const std::exception&) {
    broken_ = true;  // What is left of it must not be committed.
    return kNoMemory;
  }
}

const char* StagedEffects::send(const sluice_effects* effects, const sluice_effect_message* message) noexcept {
  StagedEffects& self = of(effects);
  return self.stage([&](Staging& staging) {
    std::string why = staging.limits.admit(*message);
    if (why.empty()) {
      read_message(*message, self.rules_, staging.effects->messages.emplace_back());
    }
    return why;
  });
}

const char* StagedEffects::write_item(const sluice_effects* effects, const sluice_effect_item* item) noexcept {
  return of(effects).stage([&](Staging& staging) {
    std::string why = staging.limits.admit(*item);
    if (why.empty()) {
      staging.effects->writes.push_back(read_item(*item));
    }
    return why;
  });
}

const char* StagedEffects::run_sql(const sluice_effects* effects, const sluice_effect_sql* sql) noexcept {
  return of(effects).stage([&](Staging& staging) {
    std::string why = staging.limits.admit(*sql);
    if (why.empty()) {
      read_sql(*sql, staging.effects->writes.emplace_back());
    }
    return why;
  });
}

const char* StagedEffects::set_result(const sluice_effects* effects, sluice_string result) noexcept {
  return of(effects).stage([&](Staging& staging) {
    std::string why = staging.limits.admit_result(result.size);
    if (why.empty()) {
      staging.effects->key = queue::KeyRecord{{}, {}, copy(result), {}};
    }
    return why;
  });
}

}  // namespace sluice::plugin

#include "host/plugin/handler_instance.hpp"

#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "base/text/utf8.hpp"
#include "host/plugin/call.hpp"
#include "sluice/health.h"

namespace sluice::plugin {

namespace {

constexpr const char* kNotAnException = "threw something that is not a std::exception";
/// A worker keeps room for this many attributes from message to message.
constexpr std::size_t kKeptAttributes = 256;

sluice_string borrow(std::string_view text) { return {text.data(), text.size()}; }

/// The options of a job in the form `create` takes them. Borrows from the OptionValues.
class OptionTable {
 public:
  explicit OptionTable(const OptionValues& options) {
    const std::vector<OptionValues::Value>& values = options.values();
    items_.resize(values.size());
    entries_.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const OptionValues::Value& value = values[i];
      for (const std::string& item : value.items) {
        items_[i].push_back(borrow(item));
      }
      entries_.push_back({sizeof(sluice_option_value), value.type, borrow(value.name), borrow(value.string),
                          value.integer, value.number, items_[i].data(), items_[i].size()});
    }
    for (const sluice_option_value& entry : entries_) {
      pointers_.push_back(&entry);
    }
  }
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  const sluice_option_value* const* data() const { return pointers_.data(); }
  std::size_t size() const { return pointers_.size(); }

 private:
  std::vector<std::vector<sluice_string>> items_;
  std::vector<sluice_option_value> entries_;
  std::vector<const sluice_option_value*> pointers_;
};

/// Runs plugin code; the text of what it throws, or nothing.
template <typename Body>
std::optional<std::string> thrown_by(Body body) {
  try {
    body();
    return std::nullopt;
  } catch (const std::exception& error) {
    return clean_utf8(error.what(), kReasonLimit);
  } catch (...) {
    return kNotAnException;
  }
}

class TableInstance final : public HandlerInstance {
 public:
  TableInstance(const sluice_handler& handler, std::string job, HandlerSurroundings surroundings)
      : handler_(handler), setting_{std::move(job), std::move(surroundings)} {
    host_.job = borrow(setting_.job);
  }
  ~TableInstance() override {
    if (created_) {
      // What a destructor throws changes nothing any more.
      static_cast<void>(thrown_by([this] { handler_.destroy(instance_); }));
    }
  }

  /// What keeps the instance from being; nothing on success.
  std::optional<std::string> start(const OptionValues& options) {
    const OptionTable table(options);
    std::string refusal;
    const auto fail = [](void* sink, sluice_string why) {
      *static_cast<std::string*>(sink) =
          clean_utf8(why.data == nullptr ? std::string_view() : std::string_view(why.data, why.size), kReasonLimit);
    };
    std::optional<std::string> thrown = thrown_by(
        [&] { created_ = handler_.create(&host_, table.data(), table.size(), &instance_, fail, &refusal) == 0; });
    if (thrown) {
      return thrown;
    }
    if (!created_ && refusal.empty()) {
      return "it gave no reason, which is a defect of the plugin";
    }
    return created_ ? std::nullopt : std::optional(std::move(refusal));
  }

  Outcome handle(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts,
                 Attempt& attempt) override {
    thread_local std::vector<sluice_attribute> attributes;
    attributes.clear();
    for (const auto& [name, value] : message.attributes) {
      attributes.push_back({borrow(name), borrow(value)});
    }
    const sluice_message raw{sizeof(sluice_message), message.attempt,
                             max_attempts,           0,
                             borrow(message.id),     borrow(queue),
                             borrow(message.body),   borrow(message.content_type),
                             borrow(message.group),  message.sent_at.time_since_epoch().count(),
                             attributes.data(),      attributes.size()};
    Call call(setting_, message, attempt);
    const std::optional<std::string> thrown = thrown_by([&] { handler_.handle(instance_, &raw, call.context()); });
    if (attributes.capacity() > kKeptAttributes) {
      std::vector<sluice_attribute>().swap(attributes);
    }
    return thrown ? call.fail(*thrown) : call.take_outcome();
  }

 private:
  static const TableInstance& of(const sluice_host* host) { return *static_cast<const TableInstance*>(host->host); }
  static void log(const sluice_host* host, sluice_log_level level, sluice_string text) noexcept {
    const CallSetting& setting = of(host).setting_;
    write_log(setting.surroundings.log, level, setting.job, {}, text);
  }
  static void report_health(const sluice_host* host, sluice_string part, std::int32_t works,
                            sluice_string text) noexcept {
    const auto view = [](sluice_string borrowed) {
      return borrowed.data == nullptr ? std::string_view() : std::string_view(borrowed.data, borrowed.size);
    };
    of(host).setting_.surroundings.health->report(view(part), works != 0, view(text));
  }
  static const void* extension(const sluice_host* host, const char* id) noexcept {
    const TableInstance& self = of(host);
    if (self.setting_.surroundings.health && id != nullptr && std::strcmp(id, SLUICE_HEALTH_1) == 0) {
      static const sluice_health health{sizeof(sluice_health), 0, &report_health};
      return &health;
    }
    const bool effects = self.setting_.surroundings.effects.random != nullptr && is_effects(id);
    return effects ? &self.effects_ : find_feature(self.setting_.surroundings.features, id);
  }

  // Fixed after construction.
  const sluice_handler& handler_;
  const CallSetting setting_;
  sluice_host host_{sizeof(sluice_host), SLUICE_ABI_MINOR, this, {}, &log, &extension};
  const sluice_effects_host effects_{sizeof(sluice_effects_host), setting_.surroundings.effects.store};
  // Fixed after start().
  bool created_ = false;
  void* instance_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<HandlerInstance>> HandlerInstance::create_in(HandlerSurroundings surroundings,
                                                                    const sluice_handler& handler, std::string job,
                                                                    const OptionValues& options) {
  auto instance = std::make_unique<TableInstance>(handler, std::move(job), std::move(surroundings));
  if (const std::optional<std::string> refusal = instance->start(options)) {
    return Error(ErrorCode::invalid,
                 "the handler \"" + std::string(handler.name) + "\" could not be created: " + *refusal);
  }
  return std::unique_ptr<HandlerInstance>(std::move(instance));
}

Result<std::unique_ptr<HandlerInstance>> HandlerInstance::create(const sluice_handler& handler, std::string job,
                                                                 const OptionValues& options, HandlerLog log) {
  return create_in({std::move(log), {}, {}}, handler, std::move(job), options);
}

bool is_concurrent(const sluice_handler& handler) { return (handler.flags & SLUICE_HANDLER_CONCURRENT) != 0; }

}  // namespace sluice::plugin

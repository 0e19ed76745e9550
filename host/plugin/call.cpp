#include "host/plugin/call.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/text/utf8.hpp"

namespace sluice::plugin {

namespace {

std::string_view view(sluice_string text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

Duration read_delay(std::int64_t nanoseconds) {
  return std::clamp(Duration(nanoseconds), Duration::zero(), kDelayLimit);
}

}  // namespace

Outcome make_fault(std::string_view text) {
  return {OutcomeStatus::fault, std::nullopt, clean_utf8(text, kReasonLimit)};
}

Outcome read_outcome(const sluice_outcome& reported) {
  if (reported.struct_size < sizeof(sluice_outcome)) {
    return make_fault("the handler reported an outcome of " + std::to_string(reported.struct_size) +
                      " bytes, which is too short to be one: a defect of the plugin");
  }
  Outcome outcome;
  switch (reported.status) {
    case SLUICE_DONE:
      outcome.status = OutcomeStatus::done;
      return outcome;
    case SLUICE_RELEASE:
      outcome.status = OutcomeStatus::release;
      return outcome;
    case SLUICE_RETRY:
      outcome.status = OutcomeStatus::retry;
      if (reported.delay >= 0) {
        outcome.delay = read_delay(reported.delay);
      }
      break;
    case SLUICE_SNOOZE:
      outcome.status = OutcomeStatus::snooze;
      outcome.delay = read_delay(reported.delay);
      break;
    case SLUICE_REJECT:
      outcome.status = OutcomeStatus::reject;
      break;
    case SLUICE_DISCARD:
      outcome.status = OutcomeStatus::discard;
      break;
    case SLUICE_FAULT:
      break;
    default:
      return make_fault("the handler reported the unknown status " + std::to_string(reported.status) +
                        ": a defect of the plugin");
  }
  outcome.reason = clean_utf8(view(reported.reason), kReasonLimit);
  return outcome;
}

void write_log(const HandlerLog& log, sluice_log_level level, std::string_view job, std::string_view message_id,
               sluice_string text) noexcept {
  if (!log) {
    return;
  }
  if (level < SLUICE_LOG_TRACE || level > SLUICE_LOG_ERROR) {
    level = SLUICE_LOG_INFO;
  }
  try {
    const std::string_view whole = view(text);
    if (whole.size() <= kLogTextLimit) {
      log(level, job, message_id, whole);
    } else {
      log(level, job, message_id,
          std::string(cut_utf8(whole, kLogTextLimit)) + "... (cut; it has " + std::to_string(whole.size()) + " bytes)");
    }
  } catch (...) {
    // There is nowhere left to say it.
  }
}

const void* find_feature(const FeatureQuery& features, const char* id) noexcept {
  if (!features || id == nullptr) {
    return nullptr;
  }
  try {
    return features(id);
  } catch (...) {
    return nullptr;
  }
}

bool is_effects(const char* id) noexcept { return id != nullptr && std::strcmp(id, SLUICE_EFFECTS_1) == 0; }

Call::Call(const CallSetting& setting, const queue::Message& message, Attempt& attempt)
    : setting_(setting),
      message_(message),
      attempt_(attempt),
      context_{sizeof(sluice_context), 0,          this,    &report,   &log, &stop_requested,
               &wait_for_stop,         &time_left, &extend, &extension},
      effects_(setting.surroundings.effects, attempt.first_result()) {}

Outcome Call::take_outcome() {
  if (!reported_) {
    return fail("the handler returned without an outcome: a defect of the plugin");
  }
  if (outcome_.status != OutcomeStatus::done) {
    drop_effects("its outcome is not done");
    return std::move(outcome_);
  }
  if (const std::string refusal = effects_.refusal(); !refusal.empty()) {
    return fail("nothing can be committed, because an effect was refused: " + refusal);
  }
  outcome_.effects = effects_.take();
  return std::move(outcome_);
}

Outcome Call::fail(std::string_view thrown) {
  drop_effects("the handler failed");
  return make_fault(thrown);
}

void Call::drop_effects(const char* why) const {
  if (const std::size_t count = effects_.count(); count > 0) {
    const std::string text = std::to_string(count) + " staged effects are dropped: " + why;
    write_log(setting_.surroundings.log, SLUICE_LOG_DEBUG, setting_.job, message_.id, {text.data(), text.size()});
  }
}

void Call::report(const sluice_context* context, const sluice_outcome* outcome) noexcept {
  Call& call = of(context);
  call.reported_ = outcome != nullptr;
  try {
    call.outcome_ = outcome != nullptr ? read_outcome(*outcome) : Outcome{};
  } catch (const std::exception&) {
    call.outcome_ = Outcome{};  // No memory for the reason: a fault without one.
  }
}

void Call::log(const sluice_context* context, sluice_log_level level, sluice_string text) noexcept {
  const Call& call = of(context);
  write_log(call.setting_.surroundings.log, level, call.setting_.job, call.message_.id, text);
}

std::int32_t Call::stop_requested(const sluice_context* context) noexcept {
  return of(context).attempt_.stop_requested() ? 1 : 0;
}

std::int32_t Call::wait_for_stop(const sluice_context* context, std::int64_t timeout) noexcept {
  return of(context).attempt_.wait_for_stop(Duration(timeout)) ? 1 : 0;
}

std::int64_t Call::time_left(const sluice_context* context) noexcept {
  return of(context).attempt_.time_left().count();
}

std::int32_t Call::extend(const sluice_context* context, std::int64_t duration) noexcept {
  return of(context).attempt_.extend(Duration(duration)) ? 0 : 1;
}

const void* Call::extension(const sluice_context* context, const char* id) noexcept {
  const Call& call = of(context);
  return is_effects(id) && call.effects_.table() != nullptr
             ? call.effects_.table()
             : find_feature(call.setting_.surroundings.attempt_features, id);
}

}  // namespace sluice::plugin

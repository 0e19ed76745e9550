#include "host/runtime/control_talk.hpp"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

std::optional<std::string> ControlTalk::received(std::string_view bytes) {
  if (stage_ != Stage::listening) {
    return std::nullopt;
  }
  const auto end = bytes.find('\n');
  const std::size_t room = kLongestRequest + 1 - request_.size();
  request_ += bytes.substr(0, std::min(end, room));
  if (request_.size() > kLongestRequest) {
    stage_ = Stage::asked;
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  stage_ = Stage::asked;
  return std::exchange(request_, {});
}

void ControlTalk::closed() {
  if (reads()) {
    stage_ = Stage::ended;
  }
}

void ControlTalk::answer(std::string_view line, Then then, SteadyTime now) {
  if (stage_ != Stage::asked) {
    return;
  }
  request_.clear();
  answer_ = std::string(line) + "\n";
  then_ = then;
  stage_ = Stage::answering;
  deadline_ = now + kAnswerTime;
}

void ControlTalk::second_line(std::string_view line, SteadyTime now) {
  const bool owed = stage_ == Stage::waiting || (stage_ == Stage::answering && then_ == Then::second_line);
  if (!owed) {
    return;
  }
  answer_ += std::string(line) + "\n";
  then_ = Then::end;
  stage_ = Stage::answering;
  deadline_ = now + kAnswerTime;
}

void ControlTalk::sent(std::size_t count, SteadyTime now) {
  sent_ += count;
  if (stage_ != Stage::answering) {
    return;
  }
  deadline_ = now + kAnswerTime;
  if (sent_ == answer_.size()) {
    stage_ = then_ == Then::end ? Stage::ended : Stage::waiting;
    deadline_ = SteadyTime::max();
  }
}

void ControlTalk::tick(SteadyTime now) {
  if (now >= deadline_) {
    stage_ = Stage::ended;
  }
}

}  // namespace sluice::runtime

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice::runtime {

/// One connection of the control socket, as steps: a line comes in, a line goes out, and perhaps a second one when what
/// was asked for has come about. It knows no socket; who has one tells it what came and when. A resource of one thread.
class ControlTalk {
 public:
  static constexpr std::size_t kLongestRequest = 4096;  ///< bytes, the line break apart
  static constexpr Duration kRequestTime = std::chrono::seconds(5);
  static constexpr Duration kAnswerTime = std::chrono::seconds(5);

  /// What a caller is owed.
  enum class Then { end, second_line };

  explicit ControlTalk(SteadyTime now) : deadline_(now + kRequestTime) {}

  /// Takes what the caller wrote. The line, once, when it is whole. What comes after it is thrown away.
  std::optional<std::string> received(std::string_view bytes);
  /// The caller writes nothing more. A caller that only waits has gone then.
  void closed();
  /// The request was longer than is taken; it wants an answer that says so.
  bool too_long() const { return stage_ == Stage::asked && request_.size() > kLongestRequest; }

  /// Nobody is there any more.
  void gone() { stage_ = Stage::ended; }

  /// Answers the line. `line` has no break.
  void answer(std::string_view line, Then then, SteadyTime now);
  /// The second line, for a caller that waits for it; nothing for others.
  void second_line(std::string_view line, SteadyTime now);

  /// What is to be written.
  std::string_view unsent() const { return std::string_view(answer_).substr(sent_); }
  void sent(std::size_t count, SteadyTime now);

  bool ended() const { return stage_ == Stage::ended; }
  bool reads() const { return stage_ == Stage::listening || stage_ == Stage::waiting; }
  /// When nothing has moved until then it is over; SteadyTime::max() for one that waits for its second line.
  SteadyTime deadline() const { return deadline_; }
  void tick(SteadyTime now);

 private:
  enum class Stage { listening, asked, answering, waiting, ended };

  Stage stage_ = Stage::listening;
  Then then_ = Then::end;
  SteadyTime deadline_;
  std::string request_;
  std::string answer_;
  std::size_t sent_ = 0;
};

}  // namespace sluice::runtime

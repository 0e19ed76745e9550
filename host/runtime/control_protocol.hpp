#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

/// What is said on a host's control socket: one line of JSON each way, and a second answer when a reload or a drain is
/// through for those who wait for it. Values.
namespace sluice::runtime {

enum class ControlVerb {
  about,           ///< the host's record: what it is and what its workers run
  look,            ///< read what operators want from the store now, rather than with the next poll
  reload,          ///< as SIGHUP
  drain,           ///< as the first SIGTERM; said again it changes nothing
  cancel_running,  ///< set the stop token of the handler at work on `message`
};
std::string_view to_string(ControlVerb verb);

struct ControlRequest {
  ControlVerb verb = ControlVerb::about;
  std::string message;  ///< an id
  bool wait = false;    ///< with `reload` and `drain`: a second line tells what came of it
};

/// {"command":"drain","wait":true}
std::string encode(const ControlRequest& request);
/// `invalid`, with what is wrong, for anything that is none.
Result<ControlRequest> decode_request(std::string_view line);

/// How a host ended, as its drain certificate says.
struct ControlEnding {
  int status = 0;
  std::string certificate;  ///< its one line for people
};

struct ControlAnswer {
  std::string error;   ///< why it was refused; empty: done
  std::string text;    ///< what the host does now
  std::string record;  ///< with `about`: JSON
  std::optional<ControlEnding> ending;

  static ControlAnswer refusal(std::string why) { return {.error = std::move(why)}; }
};

std::string encode(const ControlAnswer& answer);
Result<ControlAnswer> decode_answer(std::string_view line);

}  // namespace sluice::runtime

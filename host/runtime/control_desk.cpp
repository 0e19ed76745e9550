#include "host/runtime/control_desk.hpp"

#include <cstddef>
#include <utility>

namespace sluice::runtime {
namespace {

/// More than any host runs: every worker of many jobs, each on a message with a long id.
constexpr std::size_t kLongestRecord = 4 * 1024 * 1024;

fleet::Directive order_of(const ControlRequest& request, const ControlPeer& peer, const fleet::HostRecord& host) {
  fleet::Directive order;
  order.by = "user " + std::to_string(peer.user) + " at the control socket";
  if (request.verb == ControlVerb::cancel_running) {
    order.wish = fleet::Wish::cancel_running;
    order.target = fleet::Target::message;
    order.name = request.message;
  } else {
    order.wish = request.verb == ControlVerb::drain ? fleet::Wish::drain : fleet::Wish::reload;
    order.target = fleet::Target::host;
    order.name = host.instance;
  }
  return order;
}

}  // namespace

ControlDesk::ControlDesk(const Parts& parts) : parts_(parts) {
  const auto answers = [this](const ControlRequest& request, const ControlPeer& peer) { return answer(request, peer); };
  auto opened = ControlSocket::open(ControlFolder::of(parts.config), answers, parts.clock);
  Result<void> started = opened ? (*opened)->start() : opened.error();
  if (!started) {
    parts.log.warn("no control socket: this host can be steered through its store and by signals only",
                   {{"why", started.error().message()}, {"mend", "let the host write to [host] state_dir"}});
    return;
  }
  socket_ = std::move(*opened);
}

ControlReply ControlDesk::answer(const ControlRequest& request, const ControlPeer& peer) {
  switch (request.verb) {
    case ControlVerb::about:
      return {{.error = {}, .text = {}, .record = write_record(parts_.host.describe(), kLongestRecord), .ending = {}},
              std::nullopt};
    case ControlVerb::look:
      parts_.host.look_now();
      return {{.error = {}, .text = "looks at what operators want", .record = {}, .ending = {}}, std::nullopt};
    default:
      return obey(request, peer);
  }
}

ControlReply ControlDesk::obey(const ControlRequest& request, const ControlPeer& peer) {
  if (request.verb == ControlVerb::cancel_running && request.message.empty()) {
    return {ControlAnswer::refusal("\"message\" is missing: the id of the message"), std::nullopt};
  }
  std::optional<std::uint64_t> awaits;
  if (request.wait && request.verb == ControlVerb::drain) {
    awaits = ControlReply::kFarewell;
  } else if (request.wait && request.verb == ControlVerb::reload) {
    // Before it is asked for, so that no reload can begin that is for this caller and is not told to him.
    const MutexLock lock(mutex_);
    awaits = ++asked_;
  }
  const fleet::Answer answer = parts_.host.obey(order_of(request, peer, parts_.host.describe()));
  if (!answer.done) {
    return {ControlAnswer::refusal(answer.text), std::nullopt};
  }
  return {{.error = {}, .text = answer.text, .record = {}, .ending = {}}, awaits};
}

void ControlDesk::reload_begins() {
  const MutexLock lock(mutex_);
  covered_ = asked_;
}

void ControlDesk::reload_ended(const ReloadResult& result) {
  std::uint64_t covered = 0;
  {
    const MutexLock lock(mutex_);
    covered = covered_;
  }
  if (socket_ && covered > 0) {
    ControlAnswer told = result.taken ? ControlAnswer{} : ControlAnswer::refusal(result.text);
    told.text = result.taken ? result.text : std::string();
    socket_->tell(covered, told);
  }
}

void ControlDesk::farewell(const ControlEnding& ending) {
  if (socket_) {
    socket_->farewell(ending);
  }
}

}  // namespace sluice::runtime

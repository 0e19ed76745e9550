// Publishes each message to a subject of NATS JetStream.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <sluice/handler.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "link.hpp"
#include "publishing/publishing.hpp"

namespace {

/// The server's line for a message holds the subject and more, 4,096 bytes at most.
constexpr std::size_t kMaxLength = 2048;

bool is_bad(char c) { return c == ' ' || c == '*' || c == '>' || publishing::is_control(c); }

bool has_empty_token(std::string_view text) {
  return text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos;
}

/// Every bad byte as %XX; every dot too where that leaves an empty token.
std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const bool dots = has_empty_token(text);
  std::string out;
  for (const char c : text) {
    if (is_bad(c) || c == '%' || (c == '.' && dots)) {
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  return out;
}

/// What is wrong with it, as the end of a sentence; empty: nothing.
std::string fault_of(std::string_view text) {
  if (has_empty_token(text)) {
    return "has an empty token: a dot at its start or end, or two in a row";
  }
  const auto bad = std::find_if(text.begin(), text.end(), &is_bad);
  if (bad == text.end()) {
    return {};
  }
  return *bad == ' '                    ? "has a space in it"
         : publishing::is_control(*bad) ? "has a control character in it"
                                        : std::string("has the wildcard ") + *bad + " in it";
}

/// The subject "topic.id", or "topic" alone where the id is empty. Spaces, wildcards, control characters and empty
/// tokens make it bad; with `encode` they are written as %XX instead, and so is '%'. What begins with '$' or "_INBOX."
/// belongs to the server, where a message would be a command, and is always bad: then the message is rejected.
std::variant<std::string, sluice::Outcome> subject_of(std::string_view topic, std::string_view id, bool encode) {
  std::string subject = encode ? encoded(topic) : std::string(topic);
  if (!id.empty()) {
    subject += '.';
    subject += encode ? encoded(id) : id;
  }
  const std::string named = "the subject \"" + publishing::one_line(subject) + "\" ";
  if (const std::string fault = fault_of(subject); !fault.empty()) {
    return sluice::reject(named + fault + "; set bad_subject = \"encode\" to have such bytes written as %XX");
  }
  if (subject.front() == '$' || subject.starts_with("_INBOX.")) {
    return sluice::reject(named + "belongs to the server; messages to it would be commands");
  }
  if (subject.size() > kMaxLength) {
    return sluice::reject(named + "has " + std::to_string(subject.size()) + " bytes; " + std::to_string(kMaxLength) +
                          " are the most");
  }
  return subject;
}

using publishing::header_value;
using publishing::plain_text;
using publishing::refuse;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr std::size_t kMaxNameLength = 256;

bool is_header_name(const std::string& text) {
  return !text.empty() && text.size() <= kMaxNameLength && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f && c != ':';
  });
}

std::vector<std::string> attributes_option(const sluice::Options& options) {
  auto names = options.list("attributes");
  for (const std::string& name : names) {
    if (!is_header_name(name) || name.starts_with("Nats-")) {
      refuse("attributes", "has \"" + publishing::one_line(name) +
                               "\", which cannot be the name of a header; letters, digits and '-' can");
    }
  }
  return names;
}

bool uses_tls(const sluice::Options& options) {
  const auto servers = options.list("servers");
  return options.get<bool>("tls") || options.has("ca_file") || options.has("certificate_file") ||
         options.has("server_name") || std::any_of(servers.begin(), servers.end(), [](const std::string& server) {
           return server.starts_with("tls://");
         });
}

}  // namespace

Settings Settings::read(const sluice::Options& options) {
  Settings settings;
  settings.domain = plain_text(options, "domain");
  settings.stream = plain_text(options, "stream");
  settings.append_id = options.get<bool>("append_id");
  settings.encode_subjects = publishing::one_of(options, "bad_subject", {"reject", "encode"}) == "encode";
  const auto id = publishing::one_of(options, "message_id", {"row", "payload", "none"});
  settings.message_id = id == "row" ? MessageId::row : id == "payload" ? MessageId::payload : MessageId::none;
  settings.attributes = attributes_option(options);
  settings.timeout = publishing::bounded(options, "timeout", 1ms, 1h);
  settings.reconnect_wait = publishing::bounded(options, "reconnect_wait", 1ms, 1h);
  settings.reconnect_jitter = publishing::bounded(options, "reconnect_jitter", 0ms, 1h);
  settings.reconnect_jitter_tls = publishing::bounded(options, "reconnect_jitter_tls", 0ms, 1h);
  settings.no_stream_wait = publishing::bounded(options, "no_stream_wait", 0ms, 1h);
  settings.tls = uses_tls(options);
  return settings;
}

namespace {

/// What JetStream says of the message itself, so that the same one never fits: too large, or with too large headers.
bool is_about_the_message(int code) { return code == 10054 || code == 10097; }

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// How late a stop may be noticed.
constexpr milliseconds kTick(50);
/// A connection tells of its changes by itself; this is for what the library forgets.
constexpr std::chrono::minutes kLookAgain(1);
/// After a message has waited in vain for a connection: it may be back any moment.
constexpr milliseconds kOutageWait(1000);
constexpr int kFurtherTries = 2;  // where no stream takes the subject

LinkEvents& make_events(sluice::Host host) {
  // The library may call into them after the connection was destroyed, until it says that it is closed. They are used
  // again then, and never freed.
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<LinkEvents>>();
  const std::lock_guard lock(mutex);
  for (const auto& events : *all) {
    if (events->begin(host)) {
      return *events;
    }
  }
  LinkEvents& events = *all->emplace_back(std::make_unique<LinkEvents>());
  events.begin(host);
  return events;
}

struct LeaveEvents {
  void operator()(LinkEvents* events) const { events->leave(); }
};

/// Until then or until the attempt is over.
std::chrono::steady_clock::time_point earlier(std::chrono::steady_clock::time_point time,
                                              const sluice::Context& context) {
  return std::min(time, context.deadline());
}

std::string none_connected(const std::string& why) {
  return "no server of NATS is connected: " + (why.empty() ? "none answers" : why);
}

/// Publishes over one connection, which it never gives up: a thread of its own makes it, when the first message comes,
/// or at once where the host shows how the broker fares, and tells of each change. Many threads are in `publish` at
/// once, each with one message in flight. `settings` outlives it.
class Broker {
 public:
  /// Throws std::invalid_argument for options that the library refuses.
  Broker(const sluice::Options& options, const Settings& settings, sluice::Host host)
      : settings_(settings),
        events_(&make_events(host)),
        options_(make_options(options, settings, host.job(), *events_)) {
    if (host.shows_health()) {
      begin_to_connect();
    }
  }
  ~Broker() {
    keeper_.request_stop();
    events_->changed();
  }
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Returns when JetStream has the message, or it is known not to take it, or time is up. What a lost connection
  /// leaves open is sent again on the next one, under the same id.
  Answer publish(const Publication& publication, const sluice::Context& context) {
    Answer answer = publish_over_links(publication, context);
    if (answer.end == Answer::End::stored || answer.end == Answer::End::timed_out) {
      events_->acknowledges(answer.end == Answer::End::stored);
    }
    return answer;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;

  Answer publish_over_links(const Publication& publication, const sluice::Context& context) {
    const Time ends = std::chrono::steady_clock::now() + settings_.timeout;
    int without_stream = 0;
    for (;;) {
      Answer answer;
      const std::shared_ptr<Link> link = connected_link(ends, context, answer);
      if (!link) {
        return answer;
      }
      answer = send(*link, publication, ends, context);
      if (answer.end == Answer::End::no_stream && without_stream++ < kFurtherTries) {
        // A stream that changes its leader is away for a moment.
        if (context.wait_for_stop(settings_.no_stream_wait)) {
          return {Answer::End::stopped};
        }
        continue;
      }
      if (answer.end == Answer::End::no_stream) {
        answer.text = link->why_no_stream(publication.subject);
      }
      if (answer.end != Answer::End::lost || std::chrono::steady_clock::now() >= earlier(ends, context)) {
        return answer;
      }
    }
  }
  std::shared_ptr<Link> connected_link(Time ends, const sluice::Context& context, Answer& failure) {
    begin_to_connect();
    for (;;) {
      const std::uint64_t seen = events_->changes();
      {
        const std::lock_guard lock(mutex_);
        if (link_ && link_->connected()) {
          return link_;
        }
        failure = {Answer::End::unreachable, 0, none_connected(link_ ? link_->last_error() : last_error_)};
      }
      if (context.stop_requested()) {
        failure = {Answer::End::stopped};
        return nullptr;
      }
      if (std::chrono::steady_clock::now() >= earlier(ends, context)) {
        return nullptr;
      }
      events_->wait_for_change(seen, kTick);
    }
  }
  Answer send(const Link& link, const Publication& publication, Time ends, const sluice::Context& context) const {
    Link::Sent sent = link.send(publication);
    // It is on its way, so a stop waits for what comes of it, as long as there is time.
    while (sent.answer.wait_for(kTick) != std::future_status::ready) {
      // The library tells a time-out by itself; this is for what it forgets.
      if (std::chrono::steady_clock::now() >= earlier(ends + settings_.timeout, context)) {
        events_->acknowledgements.answer(sent.message, {Answer::End::timed_out});
      }
    }
    return sent.answer.get();
  }
  void begin_to_connect() {
    std::call_once(begun_, [this] { keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); }); });
  }
  /// The thread: keeps the connection, and shows how it fares.
  void keep(const std::stop_token& stop) {
    std::minstd_rand random(std::random_device{}());
    const milliseconds jitter = settings_.tls ? settings_.reconnect_jitter_tls : settings_.reconnect_jitter;
    Time next_attempt{};
    std::optional<std::pair<bool, std::string>> shown;
    while (!stop.stop_requested()) {
      const std::uint64_t seen = events_->changes();
      if (Time::clock::now() >= next_attempt && !renew()) {
        next_attempt = Time::clock::now() + settings_.reconnect_wait +
                       milliseconds(std::uniform_int_distribution<std::int64_t>(0, jitter.count())(random));
      }
      if (const auto now_so = health(); shown != now_so) {
        events_->show(now_so.first, now_so.second);
        shown = now_so;
      }
      if (!stop.stop_requested()) {
        events_->wait_for_change(seen, link_ ? nanoseconds(kLookAgain) : next_attempt - Time::clock::now());
      }
    }
  }
  /// Gives up a connection that is closed for good, or makes one where there is none. False: there is none.
  bool renew() {
    if (link_) {
      const std::lock_guard lock(mutex_);
      if (link_->closed()) {
        last_error_ = link_->last_error();
        link_.reset();
      }
      return link_ != nullptr;
    }
    auto connected = Link::connect(settings_, options_.get(), *events_);
    {
      const std::lock_guard lock(mutex_);
      if (auto* why = std::get_if<std::string>(&connected)) {
        last_error_ = std::move(*why);
        return false;
      }
      link_ = std::get<std::unique_ptr<Link>>(std::move(connected));
    }
    events_->changed();
    return true;
  }
  std::pair<bool, std::string> health() const {
    if (!link_) {
      return {false, none_connected(last_error_)};
    }
    if (!link_->connected()) {
      const std::string why = link_->last_error();
      return {false, "the connection is lost: " + (why.empty() ? "it ended" : why) + "; trying again for ever"};
    }
    if (events_->silent()) {
      return {false, "connected to " + link_->url() + ", which acknowledges nothing"};
    }
    return {true, "connected to " + link_->url()};
  }

  const Settings& settings_;

  std::mutex mutex_;
  // Guarded by mutex_; written by the thread alone.
  std::shared_ptr<Link> link_;
  std::string last_error_;

  const std::unique_ptr<LinkEvents, LeaveEvents> events_;  ///< left before the connection ends
  const OwnedOptions options_;
  std::once_flag begun_;
  std::jthread keeper_;
};

// `handle` is const: one instance serves all workers over one connection, with one message in flight for each.
class Nats {
 public:
  static constexpr const char* help =
      "Publishes each message to a subject of NATS JetStream, and is done when a stream has stored it.";
  static constexpr auto options = publishing::both(Settings::kOptions, publishing::Routes::kOptions);

  Nats(const sluice::Options& values, sluice::Host host)
      : settings_(Settings::read(values)),
        routes_(values, {"nats"}, "subject", host.job()),
        outage_(values, kOutageWait),
        broker_(std::make_unique<Broker>(values, settings_, host)) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const publishing::Envelope envelope = routes_.envelope(message);
    const auto target = routes_.find(envelope, context);
    if (const auto* end = std::get_if<sluice::Outcome>(&target)) {
      return *end;
    }
    const std::string_view id = settings_.append_id ? envelope.id : std::string_view();
    const auto subject = subject_of(std::get<publishing::Target>(target).name, id, settings_.encode_subjects);
    if (const auto* end = std::get_if<sluice::Outcome>(&subject)) {
      return *end;
    }
    if (context.stop_requested()) {
      return sluice::release();
    }
    Publication publication = publication_of(message, envelope);
    publication.subject = std::get<std::string>(subject);
    return judge(broker_->publish(publication, context), publication.subject, context);
  }

 private:
  Publication publication_of(const sluice::Message& message, const publishing::Envelope& envelope) const {
    Publication publication;
    publication.body = message.body();
    if (settings_.message_id == Settings::MessageId::row) {
      publication.id = header_value(envelope.unique_id());
    } else if (settings_.message_id == Settings::MessageId::payload) {
      publication.id = publishing::sha256_hex(message.body());
    }
    publication.headers = publishing::published_attributes(message, envelope, settings_.attributes);
    for (auto& [name, value] : publication.headers) {
      value = header_value(value);
    }
    return publication;
  }

  sluice::Outcome judge(const Answer& answer, std::string_view subject, const sluice::Context& context) const {
    const std::string named = "NATS, subject \"" + publishing::one_line(subject) + "\": ";
    switch (answer.end) {
      case Answer::End::stored:
        return sluice::done();
      case Answer::End::stopped:
        return context.time_left() <= std::chrono::nanoseconds::zero()
                   ? sluice::retry("no server of NATS answered within the job's timeout")
                   : sluice::release();
      case Answer::End::too_large:
        return sluice::reject(named + "the message is too large: " + answer.text);
      case Answer::End::refused: {
        const std::string why =
            named + "JetStream refused it: " + answer.text + " (error " + std::to_string(answer.code) + ")";
        return is_about_the_message(answer.code) ? sluice::reject(why) : sluice::retry(why);
      }
      case Answer::End::not_permitted:
        return sluice::retry(named + "the user may not publish there: " + answer.text);
      case Answer::End::no_stream:
        return sluice::retry(named + answer.text);
      case Answer::End::unreachable:
        return outage_.outcome(answer.text, context);
      case Answer::End::lost:
        return sluice::retry(named + "the connection broke before the acknowledgement: " + answer.text);
      case Answer::End::timed_out:
        break;
    }
    return sluice::retry(named + "no acknowledgement within " + std::to_string(settings_.timeout.count()) +
                         " ms; the stream may have it all the same, and takes it once");
  }

  const Settings settings_;
  const publishing::Routes routes_;
  mutable publishing::Outage outage_;
  const std::unique_ptr<Broker> broker_;
};

}  // namespace

SLUICE_PLUGIN("nats", "1.0.0", Nats)

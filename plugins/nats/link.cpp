#include "link.hpp"

#include <array>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

std::future<Answer> Acknowledgements::expect(const void* message, std::string_view subject) {
  const std::lock_guard lock(mutex_);
  Waiting& waiting = waiting_[message];
  waiting = {std::string(subject), {}};
  return waiting.answer.get_future();
}

void Acknowledgements::answer(const void* message, Answer answer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = waiting_.find(message); found != waiting_.end()) {
    found->second.answer.set_value(std::move(answer));
    waiting_.erase(found);
  }
}

void Acknowledgements::answer_all(const Answer& answer, const std::string* quoting) {
  const std::lock_guard lock(mutex_);
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    if (quoting != nullptr && quoting->find('"' + entry->second.subject + '"') == std::string::npos) {
      ++entry;
      continue;
    }
    entry->second.answer.set_value(answer);
    entry = waiting_.erase(entry);
  }
}

namespace {

using publishing::plain_text;
using publishing::readable_file;
using publishing::refuse;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr std::int64_t kQuestionMilliseconds = 1000;

std::string text_of(natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  return detail != nullptr && *detail != '\0' ? detail : natsStatus_GetText(status);
}

std::string last_error_of(natsConnection* connection) {
  const char* text = nullptr;
  const natsStatus status = natsConnection_GetLastError(connection, &text);
  return text != nullptr && *text != '\0' ? text : status == NATS_OK ? "" : natsStatus_GetText(status);
}

LinkEvents& of(void* closure) { return *static_cast<LinkEvents*>(closure); }

// The library's callbacks. Each runs on a thread of the library's.

void on_lost(natsConnection* connection, void* closure) {
  const std::string why = last_error_of(connection);
  of(closure).lost(why.empty() ? "the connection ended" : why);
}

/// Without a user and a password.
std::string url_of(natsConnection* connection) {
  std::array<char, 256> text{};
  natsConnection_GetConnectedUrl(connection, text.data(), text.size());
  std::string url = text.data();
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.rfind('@');
  return at == std::string::npos || scheme == std::string::npos ? url : url.erase(scheme + 3, at - scheme - 2);
}

void on_restored(natsConnection* connection, void* closure) { of(closure).restored(url_of(connection)); }

void on_closed(natsConnection*, void* closure) { of(closure).closed(); }

void on_error(natsConnection* connection, natsSubscription*, natsStatus status, void* closure) {
  if (status == NATS_NOT_PERMITTED) {
    of(closure).not_permitted(last_error_of(connection));
  }
}

void on_acknowledged(jsCtx*, natsMsg* message, jsPubAck* stored, jsPubAckErr* refusal, void* closure) {
  Answer answer{Answer::End::stored, 0, {}, {message, &natsMsg_Destroy}};
  if (stored == nullptr && refusal != nullptr) {
    answer.end = refusal->Err == NATS_NO_RESPONDERS ? Answer::End::no_stream
                 : refusal->Err == NATS_TIMEOUT     ? Answer::End::timed_out
                                                    : Answer::End::refused;
    answer.code = static_cast<int>(refusal->ErrCode);
    answer.text = refusal->ErrText == nullptr ? natsStatus_GetText(refusal->Err) : refusal->ErrText;
  }
  of(closure).acknowledgements.answer(message, std::move(answer));
}

void check(natsStatus status, const char* what) {
  if (status != NATS_OK) {
    throw std::invalid_argument(std::string(what) + ": " + text_of(status));
  }
}

std::vector<std::string> servers_option(const sluice::Options& options) {
  auto servers = options.list("servers");
  if (servers.empty()) {
    refuse("servers", "is empty; name one, such as \"nats://127.0.0.1:4222\"");
  }
  for (const std::string& server : servers) {
    const bool known = server.starts_with("nats://") || server.starts_with("tls://");
    // What may hold a password is not repeated.
    if (!known || publishing::has_control(server) || server.find(' ') != std::string::npos) {
      refuse("servers", "must hold addresses such as \"nats://127.0.0.1:4222\" or \"tls://nats.example.com:4222\"");
    }
  }
  return servers;
}

void set_identity(const sluice::Options& options, natsOptions* made) {
  const int ways =
      (options.has("username") ? 1 : 0) + (options.has("token") ? 1 : 0) + (options.has("credentials_file") ? 1 : 0);
  if (ways > 1) {
    refuse("username", "and \"token\" and \"credentials_file\" exclude each other; set one of them");
  }
  if (options.has("password") && !options.has("username")) {
    refuse("password", "needs \"username\" beside it");
  }
  if (options.has("seed_file") && !options.has("credentials_file")) {
    refuse("seed_file", "needs \"credentials_file\" beside it, with the JWT");
  }
  if (const std::string name = plain_text(options, "username"); !name.empty()) {
    check(natsOptions_SetUserInfo(made, name.c_str(), options.get("password", "").c_str()), "the user");
  }
  if (const std::string token = options.get("token", ""); !token.empty()) {
    check(natsOptions_SetToken(made, token.c_str()), "the option \"token\"");
  }
  if (const std::string file = readable_file(options, "credentials_file"); !file.empty()) {
    const std::string seed = readable_file(options, "seed_file");
    check(natsOptions_SetUserCredentialsFromFiles(made, file.c_str(), seed.empty() ? nullptr : seed.c_str()),
          "the option \"credentials_file\"");
  }
}

void set_tls(const sluice::Options& options, bool tls, natsOptions* made) {
  const bool verify = options.get<bool>("tls_verify");
  const std::string certificate = readable_file(options, "certificate_file");
  const std::string key = readable_file(options, "key_file");
  if (options.has("certificate_file") != options.has("key_file")) {
    refuse("certificate_file", "and \"key_file\" belong together; set both");
  }
  if (!verify && !tls) {
    refuse("tls_verify", "has no meaning without TLS; set \"tls\" as well");
  }
  if (tls) {
    check(natsOptions_SetSecure(made, true), "the option \"tls\"");
    natsOptions_SkipServerVerification(made, !verify);
  }
  if (const std::string file = readable_file(options, "ca_file"); !file.empty()) {
    check(natsOptions_LoadCATrustedCertificates(made, file.c_str()), "the option \"ca_file\"");
  }
  if (!certificate.empty()) {
    check(natsOptions_LoadCertificatesChain(made, certificate.c_str(), key.c_str()),
          "the options \"certificate_file\" and \"key_file\"");
  }
  if (const std::string name = plain_text(options, "server_name"); !name.empty()) {
    check(natsOptions_SetExpectedHostname(made, name.c_str()), "the option \"server_name\"");
  }
}

}  // namespace

OwnedOptions make_options(const sluice::Options& options, const Settings& settings, std::string_view job,
                          LinkEvents& events) {
  natsOptions* made = nullptr;
  check(natsOptions_Create(&made), "libnats cannot be started");
  OwnedOptions owned(made);
  const std::vector<std::string> servers = servers_option(options);
  std::vector<const char*> addresses;
  addresses.reserve(servers.size());
  for (const std::string& server : servers) {
    addresses.push_back(server.c_str());
  }
  const std::string name = options.has("name") ? plain_text(options, "name") : "sluice-" + std::string(job);
  check(natsOptions_SetServers(made, addresses.data(), static_cast<int>(addresses.size())), "the option \"servers\"");
  check(natsOptions_SetName(made, name.c_str()), "the option \"name\"");
  check(natsOptions_SetTimeout(made, publishing::bounded(options, "connect_timeout", 1ms, 1h).count()),
        "the option \"connect_timeout\"");
  natsOptions_SetMaxReconnect(made, -1);
  natsOptions_SetReconnectWait(made, settings.reconnect_wait.count());
  natsOptions_SetReconnectJitter(made, settings.reconnect_jitter.count(), settings.reconnect_jitter_tls.count());
  natsOptions_SetDisconnectedCB(made, &on_lost, &events);
  natsOptions_SetReconnectedCB(made, &on_restored, &events);
  natsOptions_SetClosedCB(made, &on_closed, &events);
  natsOptions_SetErrorHandler(made, &on_error, &events);
  set_identity(options, made);
  set_tls(options, settings.tls, made);
  return owned;
}

std::variant<std::unique_ptr<Link>, std::string> Link::connect(const Settings& settings, natsOptions* options,
                                                               LinkEvents& events) {
  natsConnection* connection = nullptr;
  jsCtx* stream = nullptr;
  natsStatus status = natsConnection_Connect(&connection, options);
  std::unique_ptr<Link> link(new Link(settings, events));
  link->connection_.reset(connection);
  if (status == NATS_OK) {
    events.opened();
    jsOptions js;
    jsOptions_Init(&js);
    js.PublishAsync.AckHandler = &on_acknowledged;
    js.PublishAsync.AckHandlerClosure = &events;
    js.Domain = settings.domain.empty() ? nullptr : settings.domain.c_str();
    js.Wait = kQuestionMilliseconds;
    status = natsConnection_JetStream(&stream, connection, &js);
    link->stream_.reset(stream);
  }
  if (status != NATS_OK) {
    return text_of(status);
  }
  on_restored(connection, &events);
  return link;
}

bool Link::connected() const { return natsConnection_Status(connection_.get()) == NATS_CONN_STATUS_CONNECTED; }

bool Link::closed() const { return natsConnection_IsClosed(connection_.get()); }

std::string Link::last_error() const { return last_error_of(connection_.get()); }

std::string Link::url() const { return url_of(connection_.get()); }

Link::Sent Link::send(const Publication& publication) const {
  natsMsg* made = nullptr;
  if (natsMsg_Create(&made, std::string(publication.subject).c_str(), nullptr, publication.body.data(),
                     static_cast<int>(publication.body.size())) != NATS_OK) {
    throw std::bad_alloc();
  }
  std::unique_ptr<natsMsg, publishing::FreedBy<natsMsg_Destroy>> owned(made);
  for (const auto& [name, value] : publication.headers) {
    if (natsMsgHeader_Set(made, name.c_str(), value.c_str()) != NATS_OK) {
      throw std::bad_alloc();
    }
  }
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = settings_.timeout.count();
  options.MsgId = publication.id.empty() ? nullptr : publication.id.c_str();
  options.ExpectStream = settings_.stream.empty() ? nullptr : settings_.stream.c_str();
  // Before it is sent: the answer may be there before the call returns.
  Sent sent{made, events_.acknowledgements.expect(made, publication.subject)};
  natsMsg* handed_over = owned.release();
  const natsStatus status = js_PublishMsgAsync(stream_.get(), &handed_over, &options);
  if (status != NATS_OK) {
    // First: once it is freed, its address may be that of another message.
    events_.acknowledgements.answer(made, not_sent(status, publication));
    owned.reset(handed_over);
  }
  return sent;
}

Answer Link::not_sent(natsStatus status, const Publication& publication) const {
  if (status != NATS_MAX_PAYLOAD) {
    return {Answer::End::lost, 0, text_of(status)};
  }
  return {Answer::End::too_large, 0,
          "its body has " + std::to_string(publication.body.size()) +
              " bytes, its headers come on top, and the server takes " +
              std::to_string(natsConnection_GetMaxPayload(connection_.get())) + " (max_payload)"};
}

std::string Link::why_no_stream(std::string_view subject) const {
  std::string where = settings_.domain.empty() ? std::string() : " in the domain \"" + settings_.domain + "\"";
  jsAccountInfo* account = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status = js_GetAccountInfo(&account, stream_.get(), nullptr, &code);
  jsAccountInfo_Destroy(account);
  if (status == NATS_NO_RESPONDERS || code == JSNotEnabledErr || code == JSNotEnabledForAccountErr) {
    return "JetStream is not enabled" + where + " for this account; enable it on the server";
  }
  return "no stream" + where + " takes the subject \"" + std::string(subject) + "\"; add it to a stream's subjects";
}

bool LinkEvents::begin(sluice::Host host) {
  const std::lock_guard lock(mutex_);
  if (host_ || connections_ > 0) {
    return false;
  }
  host_.emplace(host);
  silent_ = false;
  return true;
}

void LinkEvents::opened() {
  const std::lock_guard lock(mutex_);
  ++connections_;
}

void LinkEvents::closed() {
  {
    const std::lock_guard lock(mutex_);
    --connections_;
  }
  changed();
}

void LinkEvents::lost(const std::string& why) {
  acknowledgements.answer_all({Answer::End::lost, 0, why});
  log(SLUICE_LOG_WARN, "the connection to NATS is lost: " + why + "; trying again for ever");
  changed();
}

void LinkEvents::restored(const std::string& where) {
  log(SLUICE_LOG_INFO, "connected to NATS at " + where);
  silent_ = false;
  changed();
}

void LinkEvents::not_permitted(const std::string& why) {
  acknowledgements.answer_all({Answer::End::not_permitted, 0, why}, &why);
}

void LinkEvents::acknowledges(bool does) {
  // Almost always no news, and then nothing is written that other threads read.
  if (silent_.load() == does && silent_.exchange(!does) == does) {
    changed();
  }
}

void LinkEvents::show(bool works, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (host_) {
    host_->health("broker", works, text);
  }
}

void LinkEvents::leave() {
  const std::lock_guard lock(mutex_);
  host_.reset();
}

std::uint64_t LinkEvents::changes() {
  const std::lock_guard lock(mutex_);
  return changes_;
}

void LinkEvents::wait_for_change(std::uint64_t seen, std::chrono::nanoseconds span) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, span, [&] { return changes_ != seen; });
}

void LinkEvents::changed() {
  const std::lock_guard lock(mutex_);
  ++changes_;
  changed_.notify_all();
}

void LinkEvents::log(sluice_log_level level, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (host_) {
    host_->log(level, text);
  }
}

// POSTs each message to an address.

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "publishing/publishing.hpp"

namespace {

/// True for the characters that a header's name consists of.
bool is_token(std::string_view text) { return publishing::consists_of(text, "!#$%&'*+-.^_`|~"); }

using publishing::FreedBy;
using publishing::refuse;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kShortest(1);
constexpr std::chrono::hours kLongest(24);

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return {};
  }
  std::string copy(text);
  curl_free(text);
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return copy;
}

/// Scheme, host and port of an address, such as "https://example.com:443"; empty when it is none. Two addresses of the
/// same origin are the same server as far as anybody can tell.
std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, FreedBy<curl_url_cleanup>> parsed(curl_url());
  if (parsed == nullptr || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return {};
  }
  return part(parsed.get(), CURLUPART_SCHEME) + "://" + part(parsed.get(), CURLUPART_HOST) + ":" +
         part(parsed.get(), CURLUPART_PORT);
}

std::string url_option(const sluice::Options& options) {
  auto url = options.get<std::string>("url");
  const std::string origin = url.find('\0') == std::string::npos ? origin_of(url) : "";
  if (!origin.starts_with("http://") && !origin.starts_with("https://")) {
    refuse("url", "must be an address such as \"https://example.com/hook\"");
  }
  return url;
}

std::string token_option(const sluice::Options& options, const char* name) {
  auto value = options.get<std::string>(name);
  if (!is_token(value)) {
    refuse(name, "may hold letters, digits and '-' only");
  }
  return value;
}

/// A value out of the environment variable that the option names; empty without the option. Never part of an error.
std::string secret_from_environment(const sluice::Options& options, const char* name) {
  if (!options.has(name)) {
    return {};
  }
  const auto variable = options.get<std::string>(name);
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') {
    refuse(name, "names the environment variable \"" + variable + "\", which is not set");
  }
  if (has_control(value)) {
    refuse(name, "names the environment variable \"" + variable +
                     "\", which has a control character in it, such as a "
                     "line's end");
  }
  return value;
}

std::string hmac_secret_option(const sluice::Options& options) {
  if (options.has("hmac_secret") && options.has("hmac_secret_env")) {
    refuse("hmac_secret", "and \"hmac_secret_env\" are both set; one of them is enough");
  }
  if (options.has("hmac_secret") && options.get("hmac_secret", "").empty()) {
    refuse("hmac_secret", "is empty");
  }
  return options.has("hmac_secret") ? options.get("hmac_secret", "")
                                    : secret_from_environment(options, "hmac_secret_env");
}

std::map<std::string, std::string> headers_option(const sluice::Options& options) {
  std::map<std::string, std::string> headers = options.map("headers");
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) {
      refuse("headers", "has \"" + name + "\", which cannot be the name of a header");
    }
    if (has_control(value)) {
      refuse("headers", "has a control character in the value of \"" + name + "\"");
    }
  }
  return headers;
}

/// The options of a webhook job, checked. A value.
struct Settings {
  std::string url;
  std::string method;
  std::map<std::string, std::string> headers;
  std::string content_type;
  std::string attribute_prefix;
  std::string bearer_token;  ///< empty: none
  std::string hmac_secret;   ///< empty: no signature
  std::string hmac_header;
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds timeout{};
  std::chrono::nanoseconds retry_after_max{};
  std::size_t response_limit = 0;
  long redirects = 0;
  std::string ca_file;

  /// Throws std::invalid_argument with a sentence for the user.
  static Settings read(const sluice::Options& options) {
    Settings settings;
    settings.url = url_option(options);
    settings.method = publishing::one_of(options, "method", {"POST", "PUT", "PATCH", "DELETE"});
    settings.headers = headers_option(options);
    settings.content_type = publishing::plain_text(options, "content_type");
    settings.attribute_prefix = options.get("attribute_prefix", "");
    if (!settings.attribute_prefix.empty()) {
      settings.attribute_prefix = token_option(options, "attribute_prefix");
    }
    settings.bearer_token = secret_from_environment(options, "bearer_token_env");
    settings.hmac_secret = hmac_secret_option(options);
    settings.hmac_header = token_option(options, "hmac_header");
    settings.connect_timeout = publishing::bounded(options, "connect_timeout", kShortest, kLongest);
    settings.timeout = publishing::bounded(options, "timeout", kShortest, kLongest);
    settings.retry_after_max = options.duration("retry_after_max");
    settings.response_limit =
        static_cast<std::size_t>(publishing::number_in(options, "response_limit", 0, 16 * 1024 * 1024));
    settings.redirects = static_cast<long>(publishing::number_in(options, "redirects", 0, 10));
    settings.ca_file = publishing::readable_file(options, "ca_file");
    return settings;
  }
};

std::string hmac_sha256(std::string_view secret, std::string_view text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size) == nullptr) {
    throw std::runtime_error("OpenSSL cannot make the signature");
  }
  return publishing::hexadecimal(bytes, size);
}

/// An attribute's name as part of a header's: what may not stand there becomes '-'.
std::string safe_name(std::string_view name) {
  std::string safe(name);
  for (char& c : safe) {
    c = is_token({&c, 1}) ? c : '-';
  }
  return safe;
}

/// Header lines as curl takes them. Moves; frees what it holds.
class HeaderList {
 public:
  /// A value of any bytes is made safe: control characters become spaces. Throws std::bad_alloc.
  void add(std::string_view name, std::string_view value) {
    const std::string safe = publishing::header_value(value);
    const bool blank = safe.find_first_not_of(' ') == std::string::npos;
    // For curl "Name:" means a header to leave out, and "Name;" one without a value.
    const std::string line = blank ? std::string(name) + ";" : std::string(name) + ": " + safe;
    append(line);
  }
  /// Keeps curl from sending a header of its own.
  void suppress(const std::string& name) { append(name + ":"); }
  const curl_slist* get() const { return lines_.get(); }

 private:
  void append(const std::string& line) {
    curl_slist* longer = curl_slist_append(lines_.get(), line.c_str());
    if (longer == nullptr) {
      throw std::bad_alloc();
    }
    static_cast<void>(lines_.release());
    lines_.reset(longer);
  }

  std::unique_ptr<curl_slist, FreedBy<curl_slist_free_all>> lines_;
};

/// All headers of a message's request. What the job's `headers` name is never set by anything else.
HeaderList request_headers(const Settings& settings, const sluice::Message& message) {
  HeaderList list;
  for (const auto& [name, value] : settings.headers) {
    list.add(name, value);
  }
  const auto add = [&](const std::string& name, std::string_view value) {
    if (std::none_of(settings.headers.begin(), settings.headers.end(),
                     [&](const auto& header) { return ::strcasecmp(header.first.c_str(), name.c_str()) == 0; })) {
      list.add(name, value);
    }
  };
  const std::string_view type = settings.content_type.empty() ? message.content_type() : settings.content_type;
  add("Content-Type", type.empty() ? "application/octet-stream" : type);
  add("X-Sluice-Message-Id", message.id());
  add("X-Sluice-Queue", message.queue());
  add("X-Sluice-Attempt", std::to_string(message.attempt()));
  add("Idempotency-Key", message.id());
  if (!settings.attribute_prefix.empty()) {
    for (const auto [name, value] : message.attributes()) {
      add(settings.attribute_prefix + safe_name(name), value);
    }
  }
  // By the names that W3C gives them, so that the server's spans are of the same trace.
  for (const char* const name : {"traceparent", "tracestate"}) {
    if (const auto value = message.attribute(name)) {
      add(name, *value);
    }
  }
  if (!settings.bearer_token.empty()) {
    add("Authorization", "Bearer " + settings.bearer_token);
  }
  if (!settings.hmac_secret.empty()) {
    add(settings.hmac_header, "sha256=" + hmac_sha256(settings.hmac_secret, message.body()));
  }
  // curl would otherwise wait up to a second for a server's permission to send a larger body.
  list.suppress("Expect");
  return list;
}

// A build that tests whether tests notice brings its own.
#ifndef SLUICE_GUARD
#define SLUICE_GUARD(name) true
#endif

constexpr std::size_t kShownBody = 200;

bool is_temporary(long status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599);
}

/// "HTTP 404: the first bytes of the body, on one line". `stray`: the other origin that a redirect leads to, which is
/// not followed; empty: none.
std::string describe(long status, std::string_view body, const std::string& stray) {
  std::string text = "HTTP " + std::to_string(status);
  std::string shown = publishing::one_line(body, kShownBody);
  shown.erase(0, std::min(shown.find_first_not_of(' '), shown.size()));
  if (!stray.empty()) {
    text += " (a redirect to " + stray + ", which is another origin and gets nothing of the message)";
  } else if (status >= 300 && status <= 399) {
    text += " (a redirect that is not followed; see the option redirects)";
  }
  if (!shown.empty()) {
    text += ": " + shown;
  }
  return text;
}

/// Where the handler was asked to finish first.
sluice::Outcome stopped(const sluice::AsyncContext& context) {
  return context.time_left() <= nanoseconds::zero() ? sluice::retry("no answer within the job's timeout")
                                                    : sluice::release();
}

/// What of an answer is kept.
struct Received {
  CURL* easy = nullptr;
  std::size_t limit = 0;
  bool follows = false;  ///< a redirect is to be followed
  bool headers_complete = false;
  bool redirected = false;  ///< and this is one: where it leads to is known at its end
  std::string body{};
};

std::size_t receive_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& received = *static_cast<Received*>(user);
  const std::string_view line(data, size);
  if (line.substr(0, 5) == "HTTP/") {
    received.headers_complete = false;  // Of one that only announced the answer; the next begins.
  } else if (line == "\r\n" || line == "\n") {
    long status = 0;
    curl_easy_getinfo(received.easy, CURLINFO_RESPONSE_CODE, &status);
    received.headers_complete = status >= 200;  // Others only announce the answer.
    received.redirected = received.follows && status >= 300 && status <= 399;
  }
  return size;
}

std::size_t receive_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& received = *static_cast<Received*>(user);
  const std::size_t kept = std::min(size, received.limit - received.body.size());
  received.body.append(data, kept);
  // Less than what came ends the transfer: a body that nobody will look at is not worth reading.
  return received.redirected ? size : kept;
}

/// One message on its way to the server and back.
struct Transfer {
  Transfer(sluice::AsyncContext its_context, std::string_view its_body, HeaderList its_headers)
      : context(std::move(its_context)), body(its_body), headers(std::move(its_headers)) {}

  sluice::AsyncContext context;
  const std::string_view body;  ///< the message's, until it is completed
  const HeaderList headers;
  std::unique_ptr<CURL, FreedBy<curl_easy_cleanup>> easy{};
  std::chrono::steady_clock::time_point ends{};
  long redirects = 0;
  std::string url{};
  Received received{};
  char why[CURL_ERROR_SIZE] = "";
};

/// Sends all requests at once on one thread, and keeps connections alive between them. `settings` outlives it.
/// Redirects are followed as far as the settings allow, and never to another origin: what the headers hold is meant for
/// this one alone.
class Sender {
 public:
  explicit Sender(const Settings& settings) : settings_(settings), origin_(origin_of(settings.url)) {
    // The host and other plugins use the same libcurl, which counts its users; so it is never cleaned up here.
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      throw std::runtime_error("libcurl cannot be started");
    }
    multi_.reset(curl_multi_init());
    if (multi_ == nullptr) {
      throw std::bad_alloc();
    }
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::jthread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  /// Nothing is on its way any more.
  ~Sender() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    curl_multi_wakeup(multi_.get());
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Completes the message when the answer is there, or soon after its context asks to stop.
  void send(std::unique_ptr<Transfer> transfer) {
    transfer->context.on_stop([this, number = transfer.get()] {
      {
        const std::lock_guard lock(mutex_);
        stopped_.push_back(number);
      }
      curl_multi_wakeup(multi_.get());
    });
    {
      const std::lock_guard lock(mutex_);
      fresh_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_.get());
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Those on their way, by what is only a name here.
  using Transfers = std::map<const Transfer*, std::unique_ptr<Transfer>>;
  static constexpr int kLookMilliseconds = 1000;

  void run() {
    for (int running = 0;;) {
      std::vector<std::unique_ptr<Transfer>> fresh;
      std::vector<const Transfer*> stopped;
      {
        const std::lock_guard lock(mutex_);
        if (closing_) {
          return;
        }
        fresh.swap(fresh_);
        stopped.swap(stopped_);
      }
      for (std::unique_ptr<Transfer>& transfer : fresh) {
        start(std::move(transfer));
      }
      for (const Transfer* const number : stopped) {
        // The place of one that has ended may be another's.
        if (const auto found = transfers_.find(number);
            found != transfers_.end() && found->second->context.stop_requested()) {
          finish(found, CURLE_ABORTED_BY_CALLBACK);
        }
      }
      curl_multi_perform(multi_.get(), &running);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg == CURLMSG_DONE) {
          const CURLcode code = message->data.result;
          finish(transfers_.find(transfer_of(message->easy_handle)), code);
        }
      }
      curl_multi_poll(multi_.get(), nullptr, 0, kLookMilliseconds, nullptr);
    }
  }

  static const Transfer* transfer_of(CURL* easy) {
    char* transfer = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    return reinterpret_cast<const Transfer*>(transfer);
  }

  void start(std::unique_ptr<Transfer> made) {
    Transfer& transfer = *made;
    if (transfer.context.stop_requested()) {
      transfer.context.complete(stopped(transfer.context));
      return;
    }
    try {
      transfer.easy.reset(curl_easy_init());
      if (transfer.easy == nullptr) {
        throw std::bad_alloc();
      }
      configure(transfer);
      transfer.url = settings_.url;
      transfer.ends = Clock::now() + settings_.timeout;
      const auto place = transfers_.emplace(&transfer, std::move(made)).first;
      if (!ask(transfer)) {
        finish(place, CURLE_FAILED_INIT);
      }
    } catch (...) {
      transfer.context.complete(std::current_exception());
    }
  }

  void configure(Transfer& transfer) {
    CURL* easy = transfer.easy.get();
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // Without it the thread would wait for a resolver that hangs when a request is broken off.
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    // curl would send our headers along to whatever host a redirect names.
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, settings_.method.c_str());
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice-webhook/1.0.0");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect_timeout.count()));
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!settings_.ca_file.empty()) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, settings_.ca_file.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &receive_header);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &receive_body);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer.received);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer.received);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.why);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.body.empty() ? "" : transfer.body.data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  }

  /// Of the server that the transfer has come to.
  bool ask(Transfer& transfer) {
    const auto left = std::chrono::ceil<milliseconds>(transfer.ends - Clock::now());
    transfer.received = {transfer.easy.get(), settings_.response_limit, transfer.redirects < settings_.redirects};
    transfer.why[0] = '\0';
    curl_easy_setopt(transfer.easy.get(), CURLOPT_URL, transfer.url.c_str());
    // curl takes 0 for no limit.
    curl_easy_setopt(transfer.easy.get(), CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max<milliseconds>(left, milliseconds(1)).count()));
    return curl_multi_add_handle(multi_.get(), transfer.easy.get()) == CURLM_OK;
  }

  void finish(Transfers::iterator place, CURLcode code) {
    if (place == transfers_.end()) {
      return;
    }
    Transfer& transfer = *place->second;
    // Keeps the connection for the next request when this one has ended; drops it otherwise.
    curl_multi_remove_handle(multi_.get(), transfer.easy.get());
    char* next = nullptr;
    std::string stray;
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_REDIRECT_URL, &next);
    if (is_answered(transfer, code) && next != nullptr && transfer.received.follows) {
      transfer.url = next;
      ++transfer.redirects;
      if (SLUICE_GUARD(webhook_origin) && origin_of(transfer.url) != origin_) {
        stray = origin_of(transfer.url);
      } else if (ask(transfer)) {
        return;
      } else {
        code = CURLE_FAILED_INIT;
      }
    }
    const sluice::Outcome outcome = is_answered(transfer, code) ? judge(transfer, stray) : failure(transfer, code);
    const std::unique_ptr<Transfer> ended = std::move(place->second);
    transfers_.erase(place);
    // It points into the message, which is gone then.
    ended->easy.reset();
    ended->context.complete(outcome);
  }

  /// The status is the server's decision. That the body behind it did not come whole changes nothing, and to send again
  /// what was accepted would be wrong.
  static bool is_answered(const Transfer& transfer, CURLcode code) {
    return transfer.received.headers_complete && (code == CURLE_OK || !transfer.received.redirected);
  }

  /// 2xx done; 408, 425, 429 and 5xx retry, after what the server asks up to `retry_after_max`; everything else reject.
  sluice::Outcome judge(const Transfer& transfer, const std::string& stray) const {
    long status = 0;
    curl_off_t seconds = 0;  // from a date, too
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_RETRY_AFTER, &seconds);
    if (status >= 200 && status <= 299) {
      return sluice::done();
    }
    const std::string why = describe(status, transfer.received.body, stray);
    if (!is_temporary(status)) {
      return sluice::reject(why);
    }
    const auto most = std::chrono::duration_cast<std::chrono::seconds>(settings_.retry_after_max);
    return seconds <= 0             ? sluice::retry(why)
           : seconds > most.count() ? sluice::retry(settings_.retry_after_max, why)
                                    : sluice::retry(std::chrono::seconds(seconds), why);
  }

  static sluice::Outcome failure(const Transfer& transfer, CURLcode code) {
    if (code == CURLE_ABORTED_BY_CALLBACK) {
      return stopped(transfer.context);
    }
    return sluice::retry(transfer.why[0] != '\0' ? transfer.why
                         : code == CURLE_OK      ? "the answer broke off within its headers"
                                                 : curl_easy_strerror(code));
  }

  const Settings& settings_;
  const std::string origin_;
  std::unique_ptr<CURLM, FreedBy<curl_multi_cleanup>> multi_;
  Transfers transfers_;  ///< of the thread
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Transfer>> fresh_;
  std::vector<const Transfer*> stopped_;
  bool closing_ = false;
  std::jthread thread_;
};

/// Asynchronous: however many messages are on their way, one thread looks after them.
class Webhook {
 public:
  static constexpr const char* help =
      "POSTs each message to an address. 2xx is done; 408, 425, 429, 5xx and network errors retry; other answers "
      "reject.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::string>("url", "Where to send, with http or https."),
      sluice::option<std::string>("method", "POST", "POST, PUT, PATCH or DELETE."),
      sluice::option<std::map<std::string, std::string>>("headers", "Headers of your own; they replace ours.").secret(),
      sluice::option<std::string>("content_type", "The Content-Type; default: the message's."),
      sluice::option<std::string>("attribute_prefix", "X-Sluice-Attr-",
                                  "Attributes are sent as headers of this prefix and their name; empty: not at all."),
      sluice::option<std::string>("bearer_token_env", "The environment variable that holds a token for Authorization."),
      sluice::option<std::string>("hmac_secret", "Signs the body with HMAC-SHA256; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("hmac_secret_env", "The environment variable that holds the secret instead."),
      sluice::option<std::string>("hmac_header", "X-Sluice-Signature", "Where the signature goes, as sha256=HEX."),
      sluice::option<nanoseconds>("connect_timeout", "5s", "To connect, TLS included."),
      sluice::option<nanoseconds>("timeout", "30s", "For the whole request."),
      sluice::option<nanoseconds>("retry_after_max", "1h", "The longest Retry-After that is honoured."),
      sluice::option<std::int64_t>("response_limit", "65536", "At most so many bytes of an answer are read."),
      sluice::option<std::int64_t>("redirects", "0", "How many redirects to follow, up to 10."),
      sluice::option<std::string>("ca_file", "Certificates to trust instead of the system's, as PEM."),
  };

  explicit Webhook(const sluice::Options& values) : settings_(Settings::read(values)), sender_(settings_) {}

  void handle(const sluice::Message& message, sluice::AsyncContext context) {
    if (context.stop_requested()) {
      context.complete(sluice::release());
      return;
    }
    HeaderList headers = request_headers(settings_, message);
    sender_.send(std::make_unique<Transfer>(std::move(context), message.body(), std::move(headers)));
  }

 private:
  Settings settings_;
  Sender sender_;
};

}  // namespace

SLUICE_PLUGIN("webhook", "1.0.0", Webhook)

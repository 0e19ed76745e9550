#include "sender.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <stdexcept>

#include "origin.hpp"

namespace {

// How late a stop may be noticed.
constexpr int kTickMilliseconds = 50;

/// The host and other plugins use the same libcurl, which counts its users; so it is never cleaned up here.
void start_curl_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      throw std::runtime_error("libcurl cannot be started");
    }
  });
}

/// What of an answer is kept.
struct Received {
  CURL* easy = nullptr;
  std::size_t limit = 0;
  bool headers_complete = false;
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
  }
  return size;
}

std::size_t receive_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& received = *static_cast<Received*>(user);
  const std::size_t kept = std::min(size, received.limit - received.body.size());
  received.body.append(data, kept);
  // Less than what came ends the transfer: a body that nobody will look at is not worth reading.
  return kept;
}

/// From seconds and from a date alike.
std::optional<std::chrono::seconds> retry_after(CURL* easy) {
  curl_off_t seconds = 0;
  const bool there = curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0;
  return there ? std::optional(std::chrono::seconds(seconds)) : std::nullopt;
}

}  // namespace

Sender::Sender(const Settings& settings) : settings_(settings), origin_(origin_of(settings.url)) {
  start_curl_once();
  multi_.reset(curl_multi_init());
  easy_.reset(curl_easy_init());
  if (multi_ == nullptr || easy_ == nullptr) {
    throw std::bad_alloc();
  }
  configure();
}

Sender::~Sender() = default;

void Sender::configure() {
  CURL* easy = easy_.get();
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
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
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &receive_header);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &receive_body);
  if (!settings_.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, settings_.ca_file.c_str());
  }
}

CURLcode Sender::perform(const sluice::Context& context, bool* stopped) {
  if (curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) {
    return CURLE_FAILED_INIT;
  }
  CURLcode code = CURLE_FAILED_INIT;
  for (int running = 1; running > 0;) {
    *stopped = context.stop_requested();
    if (*stopped || curl_multi_perform(multi_.get(), &running) != CURLM_OK) {
      break;
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      code = message->msg == CURLMSG_DONE ? message->data.result : code;
    }
    if (running > 0) {
      curl_multi_poll(multi_.get(), nullptr, 0, kTickMilliseconds, nullptr);
    }
  }
  // Keeps the connection for the next request when this one has ended; drops it otherwise.
  curl_multi_remove_handle(multi_.get(), easy_.get());
  return code;
}

Answer Sender::send(std::string_view body, const HeaderList& headers, const sluice::Context& context) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  CURL* easy = easy_.get();
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.empty() ? "" : body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  const auto ends = steady_clock::now() + settings_.timeout;
  std::string url = settings_.url;
  Answer answer;
  for (long redirects = 0;; ++redirects) {
    const auto left = std::chrono::ceil<milliseconds>(ends - steady_clock::now());
    // curl takes 0 for no limit.
    answer = exchange(url, std::max(left, milliseconds(1)), context);
    char* next = nullptr;
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &next);
    if (answer.end != Answer::End::answered || next == nullptr || redirects >= settings_.redirects) {
      break;
    }
    url = next;
    if (SLUICE_GUARD(webhook_origin) && origin_of(url) != origin_) {
      answer.stray_redirect = origin_of(url);
      break;
    }
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, nullptr);
  return answer;
}

Answer Sender::exchange(const std::string& url, std::chrono::milliseconds timeout, const sluice::Context& context) {
  CURL* easy = easy_.get();
  Received received{easy, settings_.response_limit};
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &received);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
  bool stopped = false;
  const CURLcode code = perform(context, &stopped);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, nullptr);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, nullptr);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);

  Answer answer;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer.status);
  // The status is the server's decision. That the body behind it did not come whole changes nothing, and to send again
  // what was accepted would be wrong.
  if (received.headers_complete) {
    answer.end = Answer::End::answered;
    answer.body = std::move(received.body);
    answer.retry_after = retry_after(easy);
  } else if (stopped) {
    answer.end = Answer::End::stopped;
  } else {
    answer.error = why[0] != '\0'     ? why
                   : code == CURLE_OK ? "the answer broke off within its headers"
                                      : curl_easy_strerror(code);
  }
  return answer;
}

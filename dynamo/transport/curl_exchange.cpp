#include "dynamo/transport/curl_exchange.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "dynamo/transport/curl_transport.hpp"

namespace sluice::dynamo {
namespace {

constexpr long kKeepAliveIdleSeconds = 30;
constexpr std::size_t kMostReserved = 1024 * 1024;  // a length is only a claim until the bytes arrive

long milliseconds_up(Duration span) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(span).count();
  constexpr long kMaxMs = 24L * 60 * 60 * 1000;
  return std::clamp<long>(static_cast<long>(rounded), 1, kMaxMs);
}

std::string seconds_text(Duration span) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
  });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

/// A header that would break out of its line is refused: whoever built it has mixed data into it.
bool is_clean(const std::string& text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
}

std::string os_reason(CURL* handle) {
  long number = 0;
  curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
  return number == 0 ? std::string() : lower(std::generic_category().message(static_cast<int>(number)));
}

}  // namespace

std::string origin_of(std::string_view url) {
  const auto scheme = url.find("://");
  const auto path = url.find_first_of("/?#", scheme == std::string_view::npos ? 0 : scheme + 3);
  return std::string(url.substr(0, path));
}

CurlExchange::CurlExchange(const CurlTransportOptions& options, const std::string& no_proxy)
    : options_(options), handle_(curl_easy_init()) {
  if (handle_ == nullptr) {
    throw std::runtime_error("libcurl cannot make a handle");
  }
  set_up(no_proxy);
}

CurlExchange::~CurlExchange() {
  release();
  curl_easy_cleanup(handle_);
}

CurlExchange& CurlExchange::of(CURL* handle) {
  char* self = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &self);
  return *reinterpret_cast<CurlExchange*>(self);
}

void CurlExchange::set_up(const std::string& no_proxy) {
  const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  // Without it a time-out during name resolution would block the I/O thread until the resolver gives up.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION,
      static_cast<long>(options_.http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1));
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options_.ca_file.empty()) {
    set(CURLOPT_CAINFO, options_.ca_file.c_str());
  }
  set(CURLOPT_NOPROXY, no_proxy.c_str());
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIdleSeconds);
  set(CURLOPT_MAXAGE_CONN,
      static_cast<long>(std::chrono::duration_cast<std::chrono::seconds>(options_.max_idle).count()));
  set(CURLOPT_HEADERFUNCTION, &CurlExchange::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &CurlExchange::on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_PREREQFUNCTION, &CurlExchange::on_send);
  set(CURLOPT_PREREQDATA, this);
}

Result<void> CurlExchange::begin(PendingRequest pending, SteadyTime now) {
  pending_ = std::move(pending);
  response_ = {};
  header_bytes_ = 0;
  sending_ = false;
  sent_before_ = 0;
  too_large_ = false;
  error_text_[0] = '\0';
  return apply(now);
}

Result<void> CurlExchange::apply(SteadyTime now) {
  const HttpRequest& request = pending_.request;
  const auto refused = [&](const std::string& why) {
    return Error(ErrorKind::transport, "cannot send a request to " + origin_of(request.url) + ": " + why);
  };
  if (request.url != last_url_) {
    last_url_ = request.url;
    if (curl_easy_setopt(handle_, CURLOPT_URL, last_url_.c_str()) != CURLE_OK) {
      return refused("the URL is not one that can be used");
    }
  }
  // libcurl 7.88, which is Debian 12's, cannot send a second request over an HTTP/2 connection without TLS: it sets
  // HTTP/2 up on it once more (curl's pull request 10643). Over TLS connections are kept.
  const long single = options_.http2 && request.url.starts_with("http://") ? 1 : 0;
  curl_easy_setopt(handle_, CURLOPT_FRESH_CONNECT, single);
  curl_easy_setopt(handle_, CURLOPT_FORBID_REUSE, single);
  // An empty "Expect:" keeps libcurl from waiting for "100 Continue" before a large body.
  curl_slist* list = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : request.headers) {
    if (!is_clean(name) || !is_clean(value)) {
      curl_slist_free_all(list);
      return refused("the header " + lower(name.substr(0, name.find_first_of("\r\n"))) + " contains a line break");
    }
    list = curl_slist_append(list, value.empty() ? (name + ";").c_str() : (name + ": " + value).c_str());
  }
  headers_ = list;
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
  if (request.method == "GET") {
    curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, nullptr);
    curl_easy_setopt(handle_, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(handle_, CURLOPT_POST, 1L);
    curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, request.method == "POST" ? nullptr : request.method.c_str());
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request.body.data());
  }
  time_allowed_ = pending_.deadline.left(now);
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_up(request.connect_timeout));
  curl_easy_setopt(handle_, CURLOPT_TIMEOUT_MS, pending_.deadline.is_never() ? 0L : milliseconds_up(time_allowed_));
  return {};
}

HttpResult CurlExchange::finish(CURLcode code, SteadyTime now) {
  if (code != CURLE_OK) {
    Error error = describe(code, now);
    release();
    return error;
  }
  long status = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  HttpResponse response = std::move(response_);
  release();
  return response;
}

HttpResult CurlExchange::cancel() {
  Error error(ErrorKind::cancelled,
              "the request to " + origin_of(last_url_) + " was ended by the stop of the transport");
  error.outcome_unknown = may_have_been_sent();
  release();
  return error;
}

HttpTransport::Callback CurlExchange::take_callback() { return std::move(pending_.done); }

void CurlExchange::release() {
  curl_slist_free_all(headers_);
  headers_ = nullptr;
  pending_.request = {};
  response_ = {};
}

long CurlExchange::bytes_sent() const {
  long bytes = 0;
  curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes;
}

bool CurlExchange::may_have_been_sent() const { return sending_ && bytes_sent() > sent_before_; }

Error CurlExchange::describe(CURLcode code, SteadyTime now) const {
  const std::string origin = origin_of(last_url_);
  Error error(ErrorKind::transport, "");
  error.outcome_unknown = may_have_been_sent();
  if (too_large_) {
    error.kind = ErrorKind::malformed_response;
    error.message = origin + " sent an answer larger than " + std::to_string(options_.max_body_bytes) + " bytes";
  } else if (code == CURLE_OPERATION_TIMEDOUT && (sending_ || pending_.deadline.passed(now))) {
    error.kind = ErrorKind::timeout;
    error.message = "no answer from " + origin + " within " + seconds_text(time_allowed_);
  } else if (!sending_ || code == CURLE_COULDNT_CONNECT) {
    // The second case: a kept connection was found dead before anything went out, and a fresh one was refused.
    error.message = connect_failure(code);
  } else if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL ||
             code == CURLE_BAD_CONTENT_ENCODING || code == CURLE_HTTP2) {
    error.kind = ErrorKind::malformed_response;
    error.message = origin + " does not answer in HTTP; is the endpoint right?";
  } else if (header_bytes_ == 0) {
    const std::string reason = os_reason(handle_);
    error.message = origin + " closed the connection before it answered" + (reason.empty() ? "" : " (" + reason + ")");
  } else {
    error.message = origin + " broke off in the middle of its answer";
  }
  return error;
}

std::string CurlExchange::connect_failure(CURLcode code) const {
  const std::string origin = origin_of(last_url_);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "cannot find the host of " + origin + "; are the region and endpoint right, and is there a network?";
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "cannot find the proxy's host on the way to " + origin + "; is the proxy in the environment right?";
    case CURLE_OPERATION_TIMEDOUT:
      return "cannot connect to " + origin + ": no connection within " +
             seconds_text(pending_.request.connect_timeout) + "; is it reachable from here?";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR: {
      std::string text(error_text_.data());
      std::replace(text.begin(), text.end(), '\n', ' ');
      return "cannot trust " + origin + ": " + (text.empty() ? curl_easy_strerror(code) : text) +
             "; is the endpoint right, and are the CA certificates installed?";
    }
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return "cannot use the endpoint " + origin + ": it is not an http or https URL";
    default: {
      const std::string reason = os_reason(handle_);
      return "cannot connect to " + origin + ": " + (reason.empty() ? lower(curl_easy_strerror(code)) : reason) +
             "; is the endpoint right and running?";
    }
  }
}

int CurlExchange::on_send(void* self, char*, char*, int, int) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  const long sent = exchange.bytes_sent();
  if (exchange.sending_ && sent > exchange.sent_before_) {
    // A kept-alive connection died under the request and libcurl is about to repeat it on a fresh one. The server may
    // have acted on the first copy, so whether to repeat is not libcurl's to decide.
    return CURL_PREREQFUNC_ABORT;
  }
  exchange.sending_ = true;
  exchange.sent_before_ = sent;
  return CURL_PREREQFUNC_OK;
}

std::size_t CurlExchange::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<CurlExchange*>(self)->add_header(std::string_view(data, size * count));
}

std::size_t CurlExchange::add_header(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > options_.max_header_bytes) {
    too_large_ = true;
    return 0;
  }
  if (line.starts_with("HTTP/")) {
    response_.headers.clear();  // what an interim answer (1xx) said is not the answer's
    return line.size();
  }
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    response_.headers.emplace_back(lower(trimmed(line.substr(0, colon))), trimmed(line.substr(colon + 1)));
    const auto& [name, value] = response_.headers.back();
    if (name == "content-length" && response_.body.empty()) {
      std::size_t length = 0;
      std::from_chars(value.data(), value.data() + value.size(), length);
      response_.body.reserve(std::min({length, kMostReserved, options_.max_body_bytes}));
    }
  }
  return line.size();
}

std::size_t CurlExchange::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  const std::size_t bytes = size * count;
  if (exchange.response_.body.size() + bytes > exchange.options_.max_body_bytes) {
    exchange.too_large_ = true;
    return 0;
  }
  exchange.response_.body.append(data, bytes);
  return bytes;
}

}  // namespace sluice::dynamo

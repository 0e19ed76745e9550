#include "dynamo/signing/signer.hpp"

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/trim_all.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/percent.hpp"
#include "dynamo/signing/digest.hpp"
#include "dynamo/signing/uri.hpp"

namespace sluice::dynamo {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

// What proxies and HTTP libraries change on the way, or add themselves; AWS's own signers leave these out too.
bool is_never_signed(std::string_view name) {
  constexpr std::string_view kNames[] = {"connection", "expect",     "transfer-encoding",
                                         "upgrade",    "user-agent", "x-amzn-trace-id"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_token(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

std::optional<Error> check_headers(const Headers& headers) {
  bool has_host = false;
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) {
      return Error(ErrorKind::validation, "a request cannot be signed: it has a header whose name is no HTTP token");
    }
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      // The value may be a secret, or an attack; it is not shown.
      return Error(ErrorKind::validation,
                   "a request cannot be signed: the value of header " + name + " holds a line break or NUL");
    }
    has_host = has_host || lower_case(name) == "host";
  }
  if (!has_host) {
    return Error(ErrorKind::validation, "a request cannot be signed without a Host header");
  }
  return std::nullopt;
}

// By name; the values of one name joined in their order.
std::map<std::string, std::string> canonical_headers(const Headers& headers) {
  std::map<std::string, std::string> canonical;
  for (const auto& [name, value] : headers) {
    std::string key = lower_case(name);
    if (!is_never_signed(key)) {
      const auto [place, added] = canonical.try_emplace(std::move(key));
      place->second +=
          (added ? "" : ",") + boost::algorithm::trim_fill_copy_if(value, " ", boost::algorithm::is_any_of(" \t"));
    }
  }
  return canonical;
}

}  // namespace

SigningKey::SigningKey(std::string_view secret, std::string_view date, std::string_view region,
                       std::string_view service) {
  std::string seed = "AWS4";
  seed.reserve(seed.size() + secret.size());  // no reallocation may leave a copy behind
  seed += secret;
  Digest date_key = hmac_sha256(seed, date);
  Digest region_key = hmac_sha256(date_key, region);
  Digest service_key = hmac_sha256(region_key, service);
  bytes_ = hmac_sha256(service_key, "aws4_request");
  cleanse(seed);
  cleanse(date_key);
  cleanse(region_key);
  cleanse(service_key);
}

SigningKey::~SigningKey() { cleanse(bytes_); }

std::string SigningKey::sign(std::string_view string_to_sign) const {
  return to_hex(hmac_sha256(bytes_, string_to_sign));
}

Signer::Signer(SigningOptions options) : options_(std::move(options)) {}

Signer::~Signer() {
  const MutexLock lock(mutex_);
  cleanse(cached_secret_);
}

std::string Signer::signature(const std::string& secret, WallTime time, std::string_view text) const {
  SigningKey key;
  {
    const std::string date = signing_timestamp(time).substr(0, 8);
    const MutexLock lock(mutex_);
    if (cached_date_ != date || cached_secret_ != secret) {
      cached_key_ = SigningKey(secret, date, options_.region, options_.service);
      cleanse(cached_secret_);
      cached_secret_ = secret;
      cached_date_ = date;
    }
    key = cached_key_;
  }
  return key.sign(text);
}

std::optional<Error> Signer::sign(const SignableRequest& request, const Credentials& credentials, WallTime time) const {
  if (!credentials.session_token.empty()) {
    request.headers.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  request.headers.emplace_back("X-Amz-Date", signing_timestamp(time));
  SLUICE_TRY(canonical, canonical_request(request));
  std::string authorization(kAlgorithm);
  authorization += " Credential=" + credentials.access_key_id + "/" + credential_scope(time, options_);
  authorization += ", SignedHeaders=" + canonical->signed_headers + ", Signature=";
  authorization += signature(credentials.secret_access_key, time, string_to_sign(canonical->text, time, options_));
  request.headers.emplace_back("Authorization", std::move(authorization));
  return std::nullopt;
}

std::optional<Error> Signer::sign(HttpRequest& request, const Credentials& credentials, WallTime time) const {
  SLUICE_TRY(url, parse_url(request.url));
  request.headers.emplace_back("Host", std::string(url->host));
  return sign({request.method, url->path, url->query, request.headers, request.body}, credentials, time);
}

Result<CanonicalRequest> canonical_request(const SignableRequest& request) {
  if (std::optional<Error> problem = check_headers(request.headers)) {
    return std::move(*problem);
  }
  if (!is_token(request.method)) {
    return Error(ErrorKind::validation, "a request cannot be signed: its method is no HTTP token");
  }
  CanonicalRequest result;
  result.payload_hash = sha256_hex(request.body);
  result.text.append(request.method) += "\n";
  result.text += percent_encoded(normalized_path(request.path), "/");
  result.text += "\n" + canonical_query(request.query) + "\n";
  for (const auto& [name, value] : canonical_headers(request.headers)) {
    result.text += name + ":" + value + "\n";
    result.signed_headers += result.signed_headers.empty() ? name : ";" + name;
  }
  result.text += "\n" + result.signed_headers + "\n" + result.payload_hash;
  return result;
}

std::string signing_timestamp(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  // Not by gmtime(), which counts leap seconds where the time zone of the process does.
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::string credential_scope(WallTime time, const SigningOptions& options) {
  return signing_timestamp(time).substr(0, 8) + "/" + options.region + "/" + options.service + "/aws4_request";
}

std::string string_to_sign(std::string_view canonical_request, WallTime time, const SigningOptions& options) {
  return std::string(kAlgorithm) + "\n" + signing_timestamp(time) + "\n" + credential_scope(time, options) + "\n" +
         sha256_hex(canonical_request);
}

std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }

}  // namespace sluice::dynamo

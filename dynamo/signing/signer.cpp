#include "dynamo/signing/signer.hpp"

#include <utility>

#include "dynamo/codec/header_lookup.hpp"
#include "dynamo/signing/digest.hpp"
#include "dynamo/signing/uri.hpp"

namespace sluice::dynamo {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::optional<Error> check_unsigned(const Headers& headers) {
  for (const std::string_view name : {"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}) {
    if (find_header(headers, name) != nullptr) {
      return Error(ErrorKind::validation, "a request cannot be signed: it already has the header " + std::string(name));
    }
  }
  return std::nullopt;
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

Result<Headers> Signer::sign_headers(const SignableRequest& request, const Credentials& credentials,
                                     WallTime time) const {
  if (std::optional<Error> problem = check_unsigned(request.headers)) {
    return std::move(*problem);
  }
  Headers added;
  if (!credentials.session_token.empty()) {
    added.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  added.emplace_back("X-Amz-Date", signing_timestamp(time));
  if (options_.sign_body) {
    added.emplace_back("x-amz-content-sha256", sha256_hex(request.body));
  }
  SignableRequest complete = request;
  for (const auto& header : added) {
    if (!options_.omit_session_token || header.first != "X-Amz-Security-Token") {
      complete.headers.push_back(header);
    }
  }
  const Result<CanonicalRequest> canonical = canonical_request(complete, options_);
  if (!canonical) {
    return canonical.error();
  }
  std::string authorization(kAlgorithm);
  authorization += " Credential=" + credentials.access_key_id + "/" + credential_scope(time, options_);
  authorization += ", SignedHeaders=" + canonical->signed_headers + ", Signature=";
  authorization += signature(credentials.secret_access_key, time, string_to_sign(canonical->text, time, options_));
  added.emplace_back("Authorization", std::move(authorization));
  return added;
}

std::optional<Error> Signer::sign(HttpRequest& request, const Credentials& credentials, WallTime time) const {
  const Result<UrlParts> url = parse_url(request.url);
  if (!url) {
    return url.error();
  }
  if (find_header(request.headers, "host") == nullptr) {
    request.headers.emplace_back("Host", std::string(url->host));
  }
  const SignableRequest signable{.method = request.method,
                                 .path = std::string(url->path),
                                 .query = std::string(url->query),
                                 .headers = request.headers,
                                 .body = request.body};
  Result<Headers> added = sign_headers(signable, credentials, time);
  if (!added) {
    return added.error();
  }
  for (auto& header : *added) {
    request.headers.push_back(std::move(header));
  }
  return std::nullopt;
}

}  // namespace sluice::dynamo

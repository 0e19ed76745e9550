#include "dynamo/credentials/sts.hpp"

#include <algorithm>
#include <optional>

#include "base/text/percent.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/error_response.hpp"
#include "dynamo/credentials/fetch.hpp"
#include "dynamo/credentials/text.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {
namespace {

constexpr const char* kVersion = "2011-06-15";
constexpr const char* kDefaultRegion = "us-east-1";

/// The five entities of XML; anything else makes the text unusable, as keys contain none.
std::optional<std::string> unescape(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {{"&amp;", '&'},  {"&lt;", '<'},    {"&gt;", '>'},
                                                             {"&quot;", '"'}, {"&apos;", '\''}, {"&#39;", '\''},
                                                             {"&#xA;", '\n'}};
  std::string out;
  while (!text.empty()) {
    if (text.front() != '&') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto* const entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                            [&](const auto& known) { return text.starts_with(known.first); });
    if (entity == std::end(kEntities)) {
      return std::nullopt;
    }
    out += entity->second;
    text.remove_prefix(entity->first.size());
  }
  return out;
}

/// What stands between <tag> and </tag>, markup included; the first one.
std::optional<std::string_view> inside(std::string_view xml, const std::string& tag) {
  const std::string open = "<" + tag + ">";
  const std::string close = "</" + tag + ">";
  const auto start = xml.find(open);
  if (start == std::string_view::npos) {
    return std::nullopt;
  }
  const auto begin = start + open.size();
  const auto end = xml.find(close, begin);
  return end == std::string_view::npos ? std::nullopt : std::optional(xml.substr(begin, end - begin));
}

/// The text of an element that has only text.
std::optional<std::string> text_of(std::string_view xml, const std::string& tag) {
  const auto content = inside(xml, tag);
  if (!content || content->find('<') != std::string_view::npos) {
    return std::nullopt;
  }
  return unescape(trim(*content));
}

/// "123456789012" of "arn:aws:sts::123456789012:assumed-role/name/session".
std::string account_of(std::string_view arn) {
  for (int field = 0; field < 4; ++field) {
    const auto colon = arn.find(':');
    if (colon == std::string_view::npos) {
      return {};
    }
    arn.remove_prefix(colon + 1);
  }
  const std::string account(arn.substr(0, arn.find(':')));
  const bool digits = account.size() == 12 && account.find_first_not_of("0123456789") == std::string::npos;
  return digits ? account : std::string();
}

struct StsEndpoint {
  std::string url;
  std::string region;
};

Result<StsEndpoint> sts_endpoint(const SourceContext& context) {
  const auto settings = resolve_settings(context.environment, context.profiles);
  if (!settings) {
    return settings.error();
  }
  const std::string region = settings->region.empty() ? kDefaultRegion : settings->region;
  if (auto url = configured_endpoint(context.environment, context.profiles, "sts")) {
    return StsEndpoint{std::move(*url), region};
  }
  if (percent_encoded(region) != region) {
    return Error(ErrorKind::validation, "the region \"" + region + "\" is not the name of one");
  }
  const std::string suffix = settings->use_dual_stack ? "api.aws" : dns_suffix(region);
  return StsEndpoint{std::string("https://sts") + (settings->use_fips ? "-fips." : ".") + region + "." + suffix + "/",
                     region};
}

std::string form_body(const StsCall& call) {
  std::string body = "Action=" + percent_encoded(call.action) + "&Version=" + kVersion;
  for (const auto& [name, value] : call.parameters) {
    body += '&';
    body += percent_encoded(name);
    body += '=';
    body += percent_encoded(value);
  }
  return body;
}

}  // namespace

Result<Credentials> parse_sts_answer(std::string_view xml, const std::string& source) {
  const auto element = inside(xml, "Credentials");
  const std::string_view part = element.value_or("");
  auto key = text_of(part, "AccessKeyId");
  auto secret = text_of(part, "SecretAccessKey");
  auto token = text_of(part, "SessionToken");
  const auto expiration = parse_timestamp_or_end(text_of(part, "Expiration").value_or(""));
  if (!key || !secret || !token || !expiration || key->empty() || secret->empty()) {
    return Error(ErrorKind::no_credentials, "STS gave an answer for " + source + " that cannot be read");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  out.session_token = std::move(*token);
  out.expires_at = expiration;
  out.account_id = account_of(text_of(inside(xml, "AssumedRoleUser").value_or(""), "Arn").value_or(""));
  out.source = source;
  return out;
}

std::string parse_sts_error(std::string_view xml) {
  const auto error = inside(xml, "Error");
  const auto code = text_of(error.value_or(""), "Code");
  if (!code) {
    return {};
  }
  return one_line(*code + ": " + text_of(*error, "Message").value_or("no reason was given"));
}

std::string default_session_name(const Clock& clock) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch()).count();
  return "sluice-" + std::to_string(seconds);
}

Result<Credentials> call_sts(const SourceContext& context, const StsCall& call, Deadline deadline) {
  auto endpoint = sts_endpoint(context);
  if (!endpoint) {
    return endpoint.error();
  }
  HttpRequest request;
  request.url = endpoint->url;
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.body = form_body(call);
  if (call.signer != nullptr) {
    const Signer signer(SigningOptions{.region = endpoint->region, .service = "sts"});
    if (auto failure = signer.sign(request, *call.signer, context.clock.wall_now())) {
      return Error(ErrorKind::no_credentials, call.source + ": cannot be asked for: " + failure->message);
    }
  }
  const auto answer = fetch(context.transport, context.clock, std::move(request), deadline);
  if (!answer) {
    return Error(ErrorKind::no_credentials, call.source + ": " + answer.error().message);
  }
  if (answer->status != 200) {
    const std::string reason = parse_sts_error(answer->body);
    return Error(ErrorKind::no_credentials,
                 call.source + ": STS refused " + call.action + " (HTTP " + std::to_string(answer->status) +
                     (reason.empty() ? ")" : "): " + reason) + "; check the role's name and its trust policy");
  }
  return parse_sts_answer(answer->body, call.source);
}

}  // namespace sluice::dynamo

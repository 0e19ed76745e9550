#include "dynamo/settings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

/// A setting's value and the place it stands in, for messages.
struct Found {
  std::string value;
  std::string place;
};

const IniSection& section_in_use(const AwsEnvironment& environment, const Profiles& profiles) {
  static const IniSection kEmpty;
  const IniSection* section = profiles.profile(active_profile(environment).name);
  return section == nullptr ? kEmpty : *section;
}

std::optional<Found> lookup(const AwsEnvironment& environment, const Profiles& profiles, const std::string& variable,
                            const std::string& key) {
  if (auto value = environment.get(variable)) {
    return Found{std::move(*value), variable};
  }
  if (auto value = property(section_in_use(environment, profiles), key)) {
    return Found{std::move(*value), key + " of profile " + active_profile(environment).name};
  }
  return std::nullopt;
}

Result<bool> boolean(const std::optional<Found>& found) {
  const std::string text = found ? lower_case(found->value) : "false";
  if (text != "true" && text != "false") {
    return Error(ErrorKind::validation, found->place + " must be true or false, not \"" + found->value + "\"");
  }
  return text == "true";
}

Result<std::string> endpoint_mode(const std::optional<Found>& found) {
  const std::string mode = found ? lower_case(found->value) : "preferred";
  if (mode != "preferred" && mode != "disabled" && mode != "required") {
    return Error(ErrorKind::validation,
                 found->place + " must be preferred, disabled or required, not \"" + found->value + "\"");
  }
  return mode;
}

std::string variable_suffix(const std::string& service) {
  std::string out = service;
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return out;
}

}  // namespace

Result<AwsSettings> resolve_settings(const AwsEnvironment& environment) {
  const auto profiles = Profiles::load(environment);
  if (!profiles) {
    return profiles.error();
  }
  return resolve_settings(environment, *profiles);
}

Result<AwsSettings> resolve_settings(const AwsEnvironment& environment, const Profiles& profiles) {
  const ActiveProfile active = active_profile(environment);
  if (active.named && profiles.profile(active.name) == nullptr) {
    return Error(ErrorKind::validation,
                 "AWS_PROFILE names " + active.name + ", which is in neither the AWS config nor the credentials file");
  }
  AwsSettings out;
  out.profile = active.name;
  out.region = resolve_region(environment, profiles).value_or("");
  out.endpoint = configured_endpoint(environment, profiles, "dynamodb").value_or("");
  const auto fips = boolean(lookup(environment, profiles, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"));
  if (!fips) {
    return fips.error();
  }
  const auto dual = boolean(lookup(environment, profiles, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint"));
  if (!dual) {
    return dual.error();
  }
  auto mode = endpoint_mode(lookup(environment, profiles, "AWS_ACCOUNT_ID_ENDPOINT_MODE", "account_id_endpoint_mode"));
  if (!mode) {
    return mode.error();
  }
  out.use_fips = *fips;
  out.use_dual_stack = *dual;
  out.account_id_endpoint_mode = std::move(*mode);
  return out;
}

std::optional<std::string> resolve_region(const AwsEnvironment& environment, const Profiles& profiles) {
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto region = environment.get(variable)) {
      return region;
    }
  }
  return property(section_in_use(environment, profiles), "region");
}

std::optional<std::string> configured_endpoint(const AwsEnvironment& environment, const Profiles& profiles,
                                               const std::string& service) {
  const IniSection& section = section_in_use(environment, profiles);
  if (environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
      lower_case(property(section, "ignore_configured_endpoint_urls").value_or("")) == "true") {
    return std::nullopt;
  }
  for (const std::string& variable :
       {"AWS_ENDPOINT_URL_" + variable_suffix(service), std::string("AWS_ENDPOINT_URL")}) {
    if (auto url = environment.get(variable)) {
      return url;
    }
  }
  if (const auto services = property(section, "services")) {
    const IniSection* of_services = profiles.services(*services);
    if (of_services != nullptr) {
      if (auto url = property(*of_services, service + ".endpoint_url")) {
        return url;
      }
    }
  }
  return property(section, "endpoint_url");
}

std::string dns_suffix(const std::string& region) {
  constexpr std::array<std::pair<const char*, const char*>, 6> kPartitions = {{
      {"cn-", "amazonaws.com.cn"},
      {"us-isob-", "sc2s.sgov.gov"},
      {"us-isof-", "csp.hci.ic.gov"},
      {"us-iso-", "c2s.ic.gov"},
      {"eu-isoe-", "cloud.adc-e.uk"},
      {"eusc-", "amazonaws.eu"},
  }};
  for (const auto& [prefix, suffix] : kPartitions) {
    if (region.starts_with(prefix)) {
      return suffix;
    }
  }
  return "amazonaws.com";
}

}  // namespace sluice::dynamo

#include "dynamo/credentials/credentials_json.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/credentials/subprocess.hpp"

namespace sluice::dynamo {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(60);
constexpr std::size_t kMaxOutput = 64 * 1024;

}  // namespace

Lookup process_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  const IniSection* section = context.profiles.profile(profile);
  const auto command = section == nullptr ? std::nullopt : property(*section, "credential_process");
  if (!command) {
    return NotConfigured{"profile " + profile + " has no credential_process"};
  }
  const std::string source = "profile " + profile + ", credential_process";
  const auto arguments = split_command(*command);
  if (!arguments) {
    return Error(ErrorKind::no_credentials, source + ": " + arguments.error().message);
  }
  const auto output =
      run_program(*arguments, kMaxOutput, context.clock, deadline.earlier(Deadline::after(context.clock, kTimeout)));
  if (!output) {
    return Error(ErrorKind::no_credentials, source + ": " + output.error().message);
  }
  if (json_member(*output, "Version") != "1") {
    return Error(ErrorKind::no_credentials, source + ": its output is not JSON with \"Version\": 1");
  }
  auto credentials = credentials_from_json(*output, "", source);
  if (!credentials) {
    return credentials.error();
  }
  if (credentials->expires_at && *credentials->expires_at <= context.clock.wall_now()) {
    return Error(ErrorKind::no_credentials, source + ": gave credentials that have expired already");
  }
  if (credentials->account_id.empty()) {
    credentials->account_id = property(*section, "aws_account_id").value_or("");
  }
  return std::move(*credentials);
}

}  // namespace sluice::dynamo

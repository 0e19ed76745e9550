#include "dynamo/credentials/sources.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/core/noncopyable.hpp>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/timestamp.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/digest.hpp"
#include "dynamo/signing/uri.hpp"

extern char** environ;
namespace sluice::dynamo {
namespace {

Error failed(const std::string& program, const std::string& what) {
  return {ErrorKind::no_credentials, "the program " + program + " " + what};
}

std::string reason(int number) { return std::generic_category().message(number); }

/// How a program is started: in a process group of its own, with a clean signal mask, whatever the host's threads
/// block.
class SpawnAttributes : boost::noncopyable {
 public:
  explicit SpawnAttributes(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) {
      ::sigaddset(&defaults, signal);
    }
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
  }
  ~SpawnAttributes() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// True when `fd` has something to read, or its end, before the deadline.
bool wait_readable(int fd, const Clock& clock, Deadline deadline) {
  for (;;) {
    const Duration left = deadline.left(clock.steady_now());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd waited{fd, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<long long>(ms, INT_MAX)));
    if (ready >= 0 || errno != EINTR) {
      return ready > 0;
    }
  }
}

/// Reads to the end of the output. An Error when it is too long or does not end in time.
Result<std::string> read_output(int fd, const std::string& program, std::size_t max_output, const Clock& clock,
                                Deadline deadline) {
  std::string output;
  std::array<char, 4096> buffer{};
  while (wait_readable(fd, clock, deadline)) {
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return failed(program, "cannot be read from: " + reason(errno));
    }
    if (count == 0) {
      return output;
    }
    output.append(buffer.data(), static_cast<std::size_t>(count));
    if (output.size() > max_output) {
      return failed(program, "writes more than " + std::to_string(max_output) + " bytes");
    }
  }
  return failed(program, "takes too long");
}

/// Waits for the end, and leaves the process to be collected: until then its number is nobody else's. Where a host that
/// runs as process 1 has collected it already, only its output can be judged.
Result<void> wait_for_end(pid_t pid, const std::string& program, const Clock& clock, Deadline deadline) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.open() && !wait_readable(process.get(), clock, deadline)) {
    return failed(program, "takes too long");
  }
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  if (info.si_pid == pid && (info.si_code != CLD_EXITED || info.si_status != 0)) {
    return failed(program, (info.si_code == CLD_EXITED ? "failed with exit code " : "was ended by signal ") +
                               std::to_string(info.si_status));
  }
  return {};
}

HttpResult send_and_wait(HttpTransport& transport, HttpRequest request, Deadline deadline) {
  const auto answer = std::make_shared<std::promise<HttpResult>>();  // shared, so that it may come at any time
  transport.send(std::move(request), deadline, [answer](HttpResult result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

bool worth_repeating(const HttpResult& result) {
  return result ? result->status >= 500
                : result.error().kind == ErrorKind::transport || result.error().kind == ErrorKind::timeout;
}

/// RFC 3339 text, or milliseconds since 1970 as Identity Center gives them.
std::optional<WallTime> expiry(const JsonScalar& value) {
  const auto milliseconds = parse_number<std::int64_t>(value.text);
  if (value.kind == JsonReader::Kind::number && milliseconds) {
    constexpr std::int64_t kMost = 9'000'000'000'000;  // the year 2255; nanoseconds end soon after
    if (*milliseconds < 0) {
      return std::nullopt;
    }
    return *milliseconds > kMost ? kEndOfTime : WallTime(std::chrono::milliseconds(*milliseconds));
  }
  return parse_timestamp_or_end(value.text);
}

constexpr Duration kTimeout = std::chrono::seconds(60);
constexpr std::size_t kMaxOutput = 64 * 1024;

constexpr FetchLimits kContainerLimits{std::chrono::seconds(2), std::chrono::seconds(2), 3};
constexpr const char* kEcsOrigin = "http://169.254.170.2";

/// Plain HTTP may go only where it does not leave the machine: the token and the keys are in the clear.
bool is_allowed(const std::string& url) {
  constexpr std::array<std::string_view, 5> kHosts = {"localhost", "::1", "169.254.170.2", "169.254.170.23",
                                                      "fd00:ec2::23"};
  const std::string lower = lower_case(url);
  const auto parts = parse_url(lower);  // names no user: nobody names one here but to deceive
  if (!parts) {
    return false;
  }
  std::string_view host = parts->host.substr(0, parts->host.find('\\'));
  host = host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
  const bool loopback = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return !host.empty() &&
         (parts->scheme == "https" || loopback || std::find(kHosts.begin(), kHosts.end(), host) != kHosts.end());
}

/// The Authorization header; empty when none is asked for. The file is read each time, as its owner rotates it.
Result<std::string> authorization(const AwsEnvironment& environment) {
  std::string token;
  if (const auto path = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    SLUICE_TRY(text, read_file(environment.expand(*path)));
    if (!text->has_value()) {
      return no_credentials(*path + " (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE) is not there");
    }
    token = **text;
  } else {
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  }
  if (token.find_first_of("\r\n") != std::string::npos) {
    return no_credentials("the container's authorization token contains a line break");
  }
  return token;
}

// Off EC2 nothing answers at the address: a laptop must not wait for it.
constexpr FetchLimits kInstanceLimits{std::chrono::seconds(1), std::chrono::seconds(1), 1};
constexpr const char* kRolePath = "/latest/meta-data/iam/security-credentials/";

std::string metadata_origin(const AwsEnvironment& environment) {
  if (auto named = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
    return without_slash(std::move(*named));
  }
  const auto mode = lower_case(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE").value_or(""));
  return mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

bool is_clean_token(const std::string& token) {
  return !token.empty() && token.find_first_of("\r\n") == std::string::npos;
}

/// What a profile says about its sign-in.
struct SignIn {
  std::string cache_key;  ///< the session's name, or the start URL of a profile without one
  std::string region;
  std::string account;
  std::string role;
};

Result<SignIn> sign_in_of(const Profiles& profiles, const std::string& profile, const IniSection& section) {
  const auto broken = [&](const std::string& what) {
    return no_credentials("profile " + profile + ": " + what + "; run aws configure sso");
  };
  const IniSection* where = &section;
  const auto session = property(section, "sso_session");
  if (session) {
    where = profiles.sso_session(*session);
    if (where == nullptr) {
      return broken("there is no section [sso-session " + *session + "]");
    }
  }
  const auto start_url = property(*where, "sso_start_url");
  const auto region = property(*where, "sso_region");
  const auto account = property(section, "sso_account_id");
  const auto role = property(section, "sso_role_name");
  if (!start_url || !region || !account || !role) {
    return broken("of sso_start_url, sso_region, sso_account_id and sso_role_name not all are given");
  }
  if (percent_encoded(*region) != *region) {
    return broken("sso_region is not the name of a region");
  }
  return SignIn{session ? *session : *start_url, *region, *account, *role};
}

Result<std::string> cached_token(const SourceContext& context, const std::string& profile, const SignIn& sign_in) {
  const std::string mend = "; run aws sso login --profile " + profile;
  const auto path = context.environment.home() / ".aws" / "sso" / "cache" / (sha1_hex(sign_in.cache_key) + ".json");
  SLUICE_TRY(text, read_file(path));
  if (!text->has_value()) {
    return no_credentials("profile " + profile + " is not signed in" + mend);
  }
  std::string token = json_text(**text, "/accessToken");
  const auto expires = parse_timestamp_or_end(json_text(**text, "/expiresAt"));
  if (token.empty() || !expires || token.find_first_of("\r\n") != std::string::npos) {
    return no_credentials("profile " + profile + ": " + path.string() + " cannot be read" + mend);
  }
  if (*expires <= context.clock.wall_now()) {
    return no_credentials("the sign-in of profile " + profile + " has expired" + mend);
  }
  return token;
}

std::string portal_url(const SourceContext& context, const SignIn& sign_in) {
  std::string usual =
      "https://portal.sso." + sign_in.region + "." + std::string(partition_of(sign_in.region).dns_suffix);
  return without_slash(configured_endpoint(context.environment, context.profiles, "sso").value_or(std::move(usual))) +
         "/federation/credentials?role_name=" + percent_encoded(sign_in.role) +
         "&account_id=" + percent_encoded(sign_in.account);
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool more = i + 1 < text.size();
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) {
        out.push_back(std::move(word));
        word.clear();
      }
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && more && (quote == '\0' || (quote == '"' && (text[i + 1] == '"' || text[i + 1] == '\\')))) {
      word += text[++i];
    } else {
      word += c;
    }
  }
  if (quote != '\0') {
    return no_credentials("the command has a quote that does not end");
  }
  if (in_word) {
    out.push_back(std::move(word));
  }
  return out;
}

Result<std::string> run_program(const std::vector<std::string>& arguments, std::size_t max_output, const Clock& clock,
                                Deadline deadline) {
  if (arguments.empty()) {
    return no_credentials("the command is empty");
  }
  const std::string& program = arguments.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return failed(program, "cannot be started: " + reason(errno));
  }
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const auto& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const SpawnAttributes how(input.get());
  pid_t pid = -1;
  if (const int failure =
          ::posix_spawnp(&pid, program.c_str(), how.actions(), how.attributes(), argv.data(), environ)) {
    return failed(program, "cannot be started: " + reason(failure));
  }
  input.close();
  auto text = read_output(output.get(), program, max_output, clock, deadline);
  const auto ended = text ? wait_for_end(pid, program, clock, deadline) : text.error();
  if (!ended) {
    ::kill(-pid, SIGKILL);
    text = ended.error();
  }
  ::waitpid(pid, nullptr, 0);
  return text;
}

HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline,
                 const FetchLimits& limits) {
  request.connect_timeout = limits.connect_timeout;
  for (int attempt = 1;; ++attempt) {
    HttpResult result = send_and_wait(transport, request, deadline.earlier(Deadline::after(clock, limits.timeout)));
    if (attempt >= limits.attempts || !worth_repeating(result) || deadline.passed(clock.steady_now())) {
      return result;
    }
  }
}

Result<Credentials> credentials_from_json(std::string_view text, const std::string& within, const std::string& source) {
  const auto unusable = [&](const std::string& what) {
    return no_credentials(source + " gave an answer that cannot be used: " + what);
  };
  const auto member = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (auto found = json_at(text, within + name)) {
        return *std::move(found);
      }
    }
    return JsonScalar();
  };
  if (json_problem(text)) {
    return unusable("it is not JSON");
  }
  Credentials out;
  out.source = source;
  out.access_key_id = member({"/AccessKeyId", "/accessKeyId"}).text;
  out.secret_access_key = member({"/SecretAccessKey", "/secretAccessKey"}).text;
  out.session_token = member({"/SessionToken", "/sessionToken", "/Token"}).text;
  out.account_id = member({"/AccountId"}).text;
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    return unusable("it has no access key");
  }
  const JsonScalar expiration = member({"/Expiration", "/expiration"});
  if (expiration.kind != JsonReader::Kind::nothing && expiration.kind != JsonReader::Kind::null) {
    out.expires_at = expiry(expiration);
    if (!out.expires_at) {
      return unusable("its expiration is not a time");
    }
  }
  return out;
}

std::string json_text(std::string_view text, std::string_view pointer) {
  return json_problem(text) ? std::string() : json_at(text, pointer).value_or(JsonScalar()).text;
}

Lookup environment_credentials(const AwsEnvironment& environment) {
  auto key = environment.get("AWS_ACCESS_KEY_ID");
  auto secret = environment.get("AWS_SECRET_ACCESS_KEY");
  if (!key && !secret) {
    return NotConfigured{"AWS_ACCESS_KEY_ID is not set"};
  }
  if (!key || !secret) {
    return no_credentials(std::string(key ? "AWS_ACCESS_KEY_ID is set but AWS_SECRET_ACCESS_KEY"
                                          : "AWS_SECRET_ACCESS_KEY is set but AWS_ACCESS_KEY_ID") +
                          " is not; set both or neither");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  const auto token = environment.get("AWS_SESSION_TOKEN");
  out.session_token = token ? *token : environment.get("AWS_SECURITY_TOKEN").value_or("");
  out.account_id = environment.get("AWS_ACCOUNT_ID").value_or("");
  out.source = "environment";
  if (const auto expiration = environment.get("AWS_CREDENTIAL_EXPIRATION")) {
    out.expires_at = parse_timestamp_or_end(*expiration);
    if (!out.expires_at) {
      return no_credentials("AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T23:14:00Z");
    }
  }
  return out;
}

Lookup static_profile_credentials(const SourceContext& context, const std::string& profile) {
  const IniSection* section = context.profiles.profile(profile);
  if (section == nullptr) {
    return NotConfigured{"there is no profile " + profile};
  }
  auto key = property(*section, "aws_access_key_id");
  auto secret = property(*section, "aws_secret_access_key");
  if (!key && !secret) {
    return NotConfigured{"profile " + profile + " has no aws_access_key_id"};
  }
  if (!key || !secret) {
    return no_credentials("profile " + profile +
                          " has only one of aws_access_key_id and aws_secret_access_key; give both");
  }
  Credentials out;
  out.access_key_id = std::move(*key);
  out.secret_access_key = std::move(*secret);
  out.session_token = property(*section, "aws_session_token").value_or("");
  out.account_id = property(*section, "aws_account_id").value_or("");
  out.source = "profile " + profile;
  return out;
}

Lookup process_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  const IniSection* section = context.profiles.profile(profile);
  const auto command = section == nullptr ? std::nullopt : property(*section, "credential_process");
  if (!command) {
    return NotConfigured{"profile " + profile + " has no credential_process"};
  }
  const std::string source = "profile " + profile + ", credential_process";
  const auto arguments = split_command(*command);
  if (!arguments) {
    return no_credentials(source + ": " + arguments.error().message);
  }
  const auto output =
      run_program(*arguments, kMaxOutput, context.clock, deadline.earlier(Deadline::after(context.clock, kTimeout)));
  if (!output) {
    return no_credentials(source + ": " + output.error().message);
  }
  if (json_text(*output, "/Version") != "1") {
    return no_credentials(source + ": its output is not JSON with \"Version\": 1");
  }
  SLUICE_TRY(credentials, credentials_from_json(*output, "", source));
  if (credentials->expires_at && *credentials->expires_at <= context.clock.wall_now()) {
    return no_credentials(source + ": gave credentials that have expired already");
  }
  if (credentials->account_id.empty()) {
    credentials->account_id = property(*section, "aws_account_id").value_or("");
  }
  return std::move(*credentials);
}

Lookup container_credentials(const SourceContext& context, Deadline deadline) {
  const auto relative = context.environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = context.environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) {
    return NotConfigured{"neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor ..._FULL_URI is set"};
  }
  if (relative && !relative->starts_with('/')) {
    return no_credentials("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
  }
  if (!relative && !is_allowed(*full)) {
    return no_credentials(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to this machine or a metadata address");
  }
  SLUICE_TRY(token, authorization(context.environment));
  HttpRequest request{.method = "GET",
                      .url = relative ? kEcsOrigin + *relative : *full,
                      .headers = {{"accept", "application/json"}},
                      .body = {}};
  if (!token->empty()) {
    request.headers.emplace_back("authorization", std::move(*token));
  }
  const auto answer = fetch(context.transport, context.clock, std::move(request), deadline, kContainerLimits);
  if (!answer) {
    return no_credentials("the container's credentials service: " + answer.error().message);
  }
  if (answer->status != 200) {
    return no_credentials("the container's credentials service answered HTTP " + std::to_string(answer->status) +
                          "; has the task or pod a role?");
  }
  SLUICE_TRY(credentials, credentials_from_json(answer->body, "", "the container's credentials service"));
  credentials->source = "container";
  return std::move(*credentials);
}

Lookup instance_credentials(const SourceContext& context, Deadline deadline) {
  if (context.environment.is_true("AWS_EC2_METADATA_DISABLED")) {
    return NotConfigured{"AWS_EC2_METADATA_DISABLED is true"};
  }
  const std::string origin = metadata_origin(context.environment);
  const auto ask = [&](HttpRequest request) {
    return fetch(context.transport, context.clock, std::move(request), deadline, kInstanceLimits);
  };
  const auto token = ask({.method = "PUT",
                          .url = origin + "/latest/api/token",
                          .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                          .body = {}});
  if (!token) {
    return NotConfigured{"no EC2 instance metadata here (" + token.error().message + ")"};
  }
  if (token->status != 200 || !is_clean_token(token->body)) {
    return NotConfigured{"the instance metadata at " + origin + " gave no session token (HTTP " +
                         std::to_string(token->status) + ")"};
  }
  const Headers with_token = {{"x-aws-ec2-metadata-token", token->body}};
  const auto roles = ask({.method = "GET", .url = origin + kRolePath, .headers = with_token, .body = {}});
  if (!roles) {
    return no_credentials("the instance metadata: " + roles.error().message);
  }
  const std::string role(trim(roles->body.substr(0, roles->body.find('\n'))));
  if (roles->status == 404 || (roles->status == 200 && role.empty())) {
    return NotConfigured{"this EC2 instance has no role"};
  }
  if (roles->status != 200) {
    return no_credentials("the instance metadata answered HTTP " + std::to_string(roles->status) +
                          " for the role's name");
  }
  const auto answer =
      ask({.method = "GET", .url = origin + kRolePath + percent_encoded(role), .headers = with_token, .body = {}});
  if (!answer || answer->status != 200) {
    return no_credentials("the instance metadata gave no credentials for role " + role + ": " +
                          (answer ? "HTTP " + std::to_string(answer->status) : answer.error().message));
  }
  SLUICE_TRY(credentials, credentials_from_json(answer->body, "", "the instance metadata"));
  credentials->source = "instance role " + role;
  return std::move(*credentials);
}

Lookup sso_credentials(const SourceContext& context, const std::string& profile, Deadline deadline) {
  const IniSection* section = context.profiles.profile(profile);
  if (section == nullptr || (!property(*section, "sso_session") && !property(*section, "sso_start_url"))) {
    return NotConfigured{"profile " + profile + " has no sso_session"};
  }
  SLUICE_TRY(sign_in, sign_in_of(context.profiles, profile, *section));
  SLUICE_TRY(token, cached_token(context, profile, *sign_in));
  const auto answer = fetch(context.transport, context.clock,
                            {.method = "GET",
                             .url = portal_url(context, *sign_in),
                             .headers = {{"x-amz-sso_bearer_token", *token}, {"accept", "application/json"}},
                             .body = {}},
                            deadline);
  const std::string source = "profile " + profile + ", IAM Identity Center";
  if (!answer) {
    return no_credentials(source + ": " + answer.error().message);
  }
  if (answer->status == 401) {
    return no_credentials(source + " no longer accepts the sign-in; run aws sso login --profile " + profile);
  }
  if (answer->status != 200) {
    return no_credentials(source + " answered HTTP " + std::to_string(answer->status) + "; may you use role " +
                          sign_in->role + " in account " + sign_in->account + "?");
  }
  SLUICE_TRY(credentials, credentials_from_json(answer->body, "/roleCredentials", source));
  credentials->account_id = sign_in->account;
  return std::move(*credentials);
}

}  // namespace sluice::dynamo

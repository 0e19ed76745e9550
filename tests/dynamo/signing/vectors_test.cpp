// Signature Version 4, stage by stage: our own cases, and AWS's test suite where the tree has it beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/timestamp.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {
namespace {

std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found{SLUICE_SOURCE_DIR "/tests/fixtures/sigv4"};
  if (std::filesystem::path theirs = SLUICE_VECTORS_DIR "/sigv4"; std::filesystem::is_directory(theirs)) {
    found.push_back(std::move(theirs));
  }
  return found;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// A request as the suite writes it: request line, headers (a line that begins with a space continues one), body.
struct RequestFile {
  std::string method;
  std::string path;
  std::string query;
  Headers headers;
  std::string body;

  SignableRequest request() { return {method, path, query, headers, body}; }

  explicit RequestFile(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    const std::string target = line.substr(first + 1, last - first - 1);
    const std::size_t question = std::min(target.find('?'), target.size());
    method = line.substr(0, first);
    path = target.substr(0, question);
    query = target.substr(std::min(question + 1, target.size()));
    while (std::getline(lines, line) && !line.empty()) {
      if (line.front() == ' ') {
        headers.back().second += " " + line;
        continue;
      }
      const std::size_t colon = line.find(':');
      headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
    }
    body.assign(std::istreambuf_iterator<char>(lines), std::istreambuf_iterator<char>());
  }
};

struct Case {
  std::filesystem::path folder;
  SigningOptions options;
  Credentials credentials;
  WallTime time;
  bool ours = false;  ///< signed as we sign; the suite knows ways that other services want

  explicit Case(std::filesystem::path path) : folder(std::move(path)) {
    const boost::json::object context = boost::json::parse(read(folder / "context.json")).as_object();
    const auto text = [](const boost::json::object& object, const char* key) {
      const auto* value = object.if_contains(key);
      return value == nullptr ? std::string() : std::string(value->as_string());
    };
    const boost::json::object& keys = context.at("credentials").as_object();
    credentials.access_key_id = text(keys, "access_key_id");
    credentials.secret_access_key = text(keys, "secret_access_key");
    credentials.session_token = text(keys, "token");
    options.region = text(context, "region");
    options.service = text(context, "service");
    const auto* omit = context.if_contains("omit_session_token");
    ours = context.at("normalize").as_bool() && !context.at("sign_body").as_bool() &&
           (omit == nullptr || !omit->as_bool());
    time = parse_timestamp(text(context, "timestamp")).value();
  }

  std::string file(const std::string& name) const { return read(folder / name); }
};

// Compares the stages of a request that carries all that its way of signing adds, but for the signature.
void compare_stages(const Case& test, const SignableRequest& prepared, const std::string& way) {
  const Result<CanonicalRequest> canonical = canonical_request(prepared);
  ASSERT_TRUE(canonical) << canonical.error().message;
  EXPECT_EQ(canonical->text, test.file(way + "-canonical-request.txt"));
  const std::string to_sign = string_to_sign(canonical->text, test.time, test.options);
  EXPECT_EQ(to_sign, test.file(way + "-string-to-sign.txt"));
  const SigningKey key(test.credentials.secret_access_key, signing_timestamp(test.time).substr(0, 8),
                       test.options.region, test.options.service);
  EXPECT_EQ(key.sign(to_sign), test.file(way + "-signature.txt"));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

Headers sorted(Headers headers) {
  for (auto& [name, value] : headers) {
    name = lower(name);
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

void check_header_signing(const Case& test) {
  RequestFile file(test.file("request.txt"));
  const auto refused = Signer(test.options).sign(file.request(), test.credentials, test.time);
  ASSERT_FALSE(refused) << refused->message;
  EXPECT_EQ(sorted(file.headers), sorted(RequestFile(test.file("header-signed-request.txt")).headers));

  ASSERT_EQ(file.headers.back().first, "Authorization");
  file.headers.pop_back();
  compare_stages(test, file.request(), "header");
}

// Nobody here presigns, so that there is nothing that would write such a query. The one of the vector goes through the
// stages that both ways have in common: they see queries there such as no other case has.
void check_query_stages(const Case& test) {
  RequestFile file(test.file("request.txt"));
  const std::string query = RequestFile(test.file("query-signed-request.txt")).query;
  const auto last = query.find("&X-Amz-Signature=");
  ASSERT_NE(last, std::string::npos);

  file.query = query.substr(0, last);
  compare_stages(test, file.request(), "query");
}

class SigV4Vectors : public ::testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Cases, SigV4Vectors, ::testing::ValuesIn(folders()),
                         [](const auto& info) { return info.index == 0 ? "Ours" : "Awss"; });

TEST_P(SigV4Vectors, EveryCaseEveryStage) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GetParam())) {
    if (!entry.is_directory()) {
      continue;
    }
    SCOPED_TRACE(entry.path().filename().string());
    const Case test(entry.path());
    if (!test.ours) {
      continue;
    }
    check_header_signing(test);
    check_query_stages(test);
    ++cases;
  }
  EXPECT_GE(cases, 8u);
}

}  // namespace
}  // namespace sluice::dynamo

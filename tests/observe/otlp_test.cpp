#include "host/observe/otlp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/fake_transport.hpp"

namespace sluice::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const LogIdentity kOtlpIdentity{"machine-1", "1.2.3"};
constexpr WallTime kWall{seconds(1'767'323'045)};
constexpr SteadyTime kSteady{seconds(100)};

config::TracingConfig tracing(config::TraceProtocol protocol) {
  return {.endpoint = "http://collector:4317",
          .protocol = protocol,
          .service = "mailer",
          .environment = "prod",
          .attributes = {{"team", "orders"}, {"service.version", "9"}},
          .headers = {{"x-api-key", "s3cret"}}};
}

std::string example_span() {
  const LogField number{"attempt", -2};
  const LogField truth{"last", true};
  Span span{.context = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            .parent = 0x1122334455667788U,
            .state = "congo=t61",
            .name = "handle",
            .kind = SpanKind::consumer,
            .began = kSteady - milliseconds(1500),
            .ended = kSteady - milliseconds(500),
            .failed = true,
            .reason = "no such \xff customer"};
  const std::initializer_list<LogField> attributes{{"messaging.message.id", "A-101"}, number, truth};
  span.attributes = attributes;
  return encode_span(span, kWall, kSteady);
}

/// What protoc, which shares nothing with the encoder, reads in it. Nothing: there is no protoc.
std::optional<std::string> decoded(const std::string& type, const std::string& bytes) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("sluice-otlp-" + std::to_string(::getpid()));
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string folder = std::string(SLUICE_SOURCE_DIR) + "/tests/fixtures/otlp";
  const std::string command =
      "protoc -I " + folder + " --decode=otlp." + type + " trace.proto < " + file.string() + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), got);
  }
  const int status = ::pclose(pipe);
  std::filesystem::remove(file);
  if (WEXITSTATUS(status) == 127) {
    return std::nullopt;
  }
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST(Otlp, ASpanIsWhatAnotherDecoderReads) {
  const auto text = decoded("Span", example_span());
  if (!text) {
    GTEST_SKIP() << "SKIPPED: no protoc; ./dev deps test installs it";
  }
  EXPECT_EQ(*text, R"(trace_id: "\n\367e\031\026\315C\335\204H\353!\034\2001\234"
span_id: "\267\255kqi 31"
trace_state: "congo=t61"
parent_span_id: "\021\"3DUfw\210"
name: "handle"
kind: SPAN_KIND_CONSUMER
start_time_unix_nano: 1767323043500000000
end_time_unix_nano: 1767323044500000000
attributes {
  key: "messaging.message.id"
  value {
    string_value: "A-101"
  }
}
attributes {
  key: "attempt"
  value {
    int_value: -2
  }
}
attributes {
  key: "last"
  value {
    bool_value: true
  }
}
status {
  message: "no such \357\277\275 customer"
  code: STATUS_CODE_ERROR
}
flags: 1
)");
}

TEST(Otlp, ARequestNamesItsResourceAndHoldsEverySpan) {
  const auto collector = make_otlp(tracing(config::TraceProtocol::http), kOtlpIdentity);
  const auto request = collector->request(std::vector<std::string>{example_span(), example_span()}, kWall);
  EXPECT_EQ(request.url, "http://collector:4317");
  EXPECT_EQ(test::header_of(request, "Content-Type"), "application/x-protobuf");
  EXPECT_EQ(test::header_of(request, "x-api-key"), "s3cret");
  const auto text = decoded("ExportTraceServiceRequest", request.body);
  if (!text) {
    GTEST_SKIP() << "SKIPPED: no protoc; ./dev deps test installs it";
  }
  const auto attribute = [](const std::string& key, const std::string& value) {
    return testing::HasSubstr("key: \"" + key + "\"\n      value {\n        string_value: \"" + value + "\"");
  };
  EXPECT_THAT(*text, attribute("service.name", "mailer"));
  EXPECT_THAT(*text, attribute("deployment.environment", "prod"));
  EXPECT_THAT(*text, attribute("team", "orders"));
  EXPECT_THAT(*text, attribute("service.version", "9")) << "the operator's word wins";
  EXPECT_THAT(*text, attribute("host.name", "machine-1"));
  EXPECT_THAT(*text, testing::HasSubstr("scope {\n      name: \"sluice\"\n      version: \"1.2.3\"\n    }"));
  std::size_t spans = 0;
  for (std::size_t at = text->find("spans {"); at != std::string::npos; at = text->find("\n    spans {", at + 1)) {
    ++spans;
  }
  EXPECT_EQ(spans - 1, 2U) << *text;
}

TEST(Otlp, OverGrpcARequestIsOneFrameToTheService) {
  const auto collector = make_otlp(tracing(config::TraceProtocol::grpc), kOtlpIdentity);
  const auto request = collector->request(std::vector<std::string>{example_span()}, kWall);
  EXPECT_EQ(request.url, "http://collector:4317/opentelemetry.proto.collector.trace.v1.TraceService/Export");
  EXPECT_EQ(test::header_of(request, "Content-Type"), "application/grpc");
  EXPECT_EQ(test::header_of(request, "TE"), "trailers");
  ASSERT_GT(request.body.size(), 5U);
  EXPECT_EQ(request.body[0], '\0') << "not compressed";
  std::size_t length = 0;
  for (int i = 1; i < 5; ++i) {
    length = length << 8U | static_cast<unsigned char>(request.body[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(length, request.body.size() - 5);
  const auto http = make_otlp(tracing(config::TraceProtocol::http), kOtlpIdentity);
  EXPECT_EQ(request.body.substr(5), http->request(std::vector<std::string>{example_span()}, kWall).body);
}

Judgement judged(config::TraceProtocol protocol, int status, dynamo::Headers headers, const std::string& body = "") {
  return make_otlp(tracing(protocol), kOtlpIdentity)
      ->judge(test::FakeTransport::response(status, body, std::move(headers)));
}

TEST(Otlp, AnswersOverHttpAreJudgedAsTheSpecificationSays) {
  using config::TraceProtocol;
  using Kind = Judgement::Kind;
  EXPECT_EQ(judged(TraceProtocol::http, 200, {}).kind, Kind::taken);
  for (const int status : {429, 502, 503, 504}) {
    EXPECT_EQ(judged(TraceProtocol::http, status, {}).kind, Kind::again) << status;
  }
  EXPECT_EQ(judged(TraceProtocol::http, 503, {{"retry-after", "5"}}).wait, Duration(seconds(5)));
  for (const int status : {400, 401, 404, 413, 500, 501}) {
    EXPECT_EQ(judged(TraceProtocol::http, status, {}).kind, Kind::refused) << status;
  }
  EXPECT_THAT(judged(TraceProtocol::http, 401, {}).why, testing::Not(testing::HasSubstr("s3cret")));
}

TEST(Otlp, AnswersOverGrpcAreJudgedByTheirTrailers) {
  using config::TraceProtocol;
  using Kind = Judgement::Kind;
  const auto of = [](const char* status) { return judged(TraceProtocol::grpc, 200, {{"grpc-status", status}}).kind; };
  EXPECT_EQ(of("0"), Kind::taken);
  for (const char* status : {"1", "4", "10", "11", "14", "15"}) {
    EXPECT_EQ(of(status), Kind::again) << status;
  }
  for (const char* status : {"2", "3", "7", "12", "13", "16"}) {
    EXPECT_EQ(of(status), Kind::refused) << status;
  }
  EXPECT_EQ(of("8"), Kind::refused);
  EXPECT_EQ(judged(TraceProtocol::grpc, 200, {{"grpc-status", "8"}, {"grpc-status-details-bin", "CAg"}}).kind,
            Kind::again)
      << "it says when to come again";
  const Judgement unwell =
      judged(TraceProtocol::grpc, 200, {{"grpc-status", "14"}, {"grpc-message", "shutting\ndown"}});
  EXPECT_EQ(unwell.why, "it answered with gRPC status 14 (shutting\\ndown)");
  EXPECT_EQ(judged(TraceProtocol::grpc, 200, {}).why, "it does not answer as gRPC does; is the port right?");
  EXPECT_EQ(judged(TraceProtocol::grpc, 503, {}).kind, Kind::again);
}

TEST(Otlp, SpansThatACollectorRejectsAreCounted) {
  std::string partial;
  protobuf::append_number(partial, 1, 3);
  protobuf::append_bytes(partial, 2, "too old");
  std::string response;
  protobuf::append_bytes(response, 1, partial);
  const Judgement http = judged(config::TraceProtocol::http, 200, {}, response);
  EXPECT_EQ(http.rejected, 3U);
  EXPECT_EQ(http.why, "too old");
  const std::string frame = std::string("\0\0\0\0", 4) + static_cast<char>(response.size()) + response;
  EXPECT_EQ(judged(config::TraceProtocol::grpc, 200, {{"grpc-status", "0"}}, frame).rejected, 3U);
  EXPECT_EQ(judged(config::TraceProtocol::http, 200, {}, "\xff\xff\xff not a message").rejected, 0U);
}

TEST(Protobuf, ReadsNothingBeyondItsBytes) {
  const auto ignore = [](std::uint32_t, std::uint64_t, std::string_view) {};
  std::string message;
  protobuf::append_number(message, 1, std::numeric_limits<std::uint64_t>::max());
  protobuf::append_bytes(message, 2, "abc");
  protobuf::append_fixed64(message, 3, 1);
  protobuf::append_fixed32(message, 4, 1);
  std::vector<std::uint32_t> fields;
  std::uint64_t first = 0;
  EXPECT_TRUE(protobuf::read(message, [&](std::uint32_t field, std::uint64_t number, std::string_view) {
    fields.push_back(field);
    first = field == 1 ? number : first;
  }));
  EXPECT_EQ(fields, (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(first, std::numeric_limits<std::uint64_t>::max());
  for (std::size_t size = 1; size < message.size(); ++size) {
    const bool whole = size == 11 || size == 16 || size == 25;
    EXPECT_EQ(protobuf::read(std::string_view(message).substr(0, size), ignore), whole) << size;
  }
  EXPECT_FALSE(protobuf::read("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ignore)) << "a length of 2^64 - 1";
  EXPECT_FALSE(protobuf::read("\x0b", ignore)) << "groups are not read";
}

}  // namespace
}  // namespace sluice::observe

#include <gtest/gtest.h>

#include "host/runtime/control_socket.hpp"

namespace sluice::runtime {
namespace {

TEST(ControlProtocol, RequestsComeBackAsTheyWere) {
  for (const ControlVerb verb :
       {ControlVerb::about, ControlVerb::look, ControlVerb::reload, ControlVerb::drain, ControlVerb::cancel_running}) {
    const auto read = decode_request(encode(ControlRequest{verb, "a \"strange\"\n\xff id", true, "orders"}));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->verb, verb);
    EXPECT_EQ(read->message, "a \"strange\"\n\xEF\xBF\xBD id");
    EXPECT_TRUE(read->wait);
    EXPECT_EQ(read->queue, "orders");
  }
  EXPECT_EQ(encode(ControlRequest{}), "{\"command\":\"about\"}");
}

TEST(ControlProtocol, AnswersComeBackAsTheyWere) {
  const ControlAnswer done{.error = {}, .text = "draining", .record = "{\"name\":\"a\"}", .ending = {}};
  auto read = decode_answer(encode(done));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text, "draining");
  EXPECT_EQ(read->record, "{\"name\":\"a\"}");
  EXPECT_EQ(read->error, "");
  EXPECT_FALSE(read->ending);
  read = decode_answer(encode(ControlAnswer::refusal("one line\nand another")));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->error, "one line\nand another");
  read = decode_answer(
      encode(ControlAnswer{.error = {}, .text = {}, .record = {}, .ending = ControlEnding{75, "drained"}}));
  ASSERT_TRUE(read);
  ASSERT_TRUE(read->ending);
  EXPECT_EQ(read->ending->status, 75);
  EXPECT_EQ(read->ending->certificate, "drained");
}

TEST(ControlProtocol, RefusesWhatIsNoRequestAndSaysWhy) {
  const auto why = [](const std::string& line) {
    const auto read = decode_request(line);
    return read ? "read" : read.error().message();
  };
  EXPECT_NE(why("").find("the request cannot be read"), std::string::npos);
  EXPECT_NE(why("GET / HTTP/1.1\r").find("the request cannot be read"), std::string::npos);
  EXPECT_NE(why("{\"command\":\"explode\"}").find("there is no command \"explode\""), std::string::npos);
  EXPECT_NE(why("{}").find("\"command\" is missing"), std::string::npos);
  EXPECT_NE(why("[]"), "read");
  EXPECT_NE(why("{\"command\":7}"), "read");
  EXPECT_NE(why("{\"command\":\"drain\",\"wait\":\"yes\"}"), "read");
  EXPECT_NE(why("{\"command\":\"drain\"} trailing"), "read");
  EXPECT_NE(why(std::string(3000, '[')), "read");
  EXPECT_EQ(why("{\"command\":\"drain\",\"of a later version\":[{\"x\":[]}]}"), "read") << "it is passed over";
}

TEST(ControlProtocol, RefusesAnAnswerThatSaysNothing) {
  EXPECT_FALSE(decode_answer("{}"));
  EXPECT_FALSE(decode_answer("{\"ok\":false}"));
  EXPECT_FALSE(decode_answer("{\"ok\":true"));
  EXPECT_FALSE(decode_answer("{\"ok\":true,\"ended\":{\"status\":1.5}}"));
  EXPECT_TRUE(decode_answer("{\"ok\":true,\"unknown\":null}"));
}

}  // namespace
}  // namespace sluice::runtime

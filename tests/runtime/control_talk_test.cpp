#include "host/runtime/control_socket.hpp"

#include <gtest/gtest.h>


namespace sluice::runtime {
namespace {

constexpr SteadyTime kStart{std::chrono::seconds(1000)};
using Then = ControlTalk::Then;

/// Takes what it has to write as a socket would that takes everything.
std::string written(ControlTalk& talk, SteadyTime now = kStart) {
  std::string text(talk.unsent());
  talk.sent(text.size(), now);
  return text;
}

TEST(ControlTalk, TakesALineInPiecesAndAnswersIt) {
  ControlTalk talk(kStart);
  EXPECT_EQ(talk.received("{\"comm"), std::nullopt);
  EXPECT_TRUE(talk.reads());
  EXPECT_EQ(talk.received("and\":1}\n{\"another"), "{\"command\":1}");
  EXPECT_FALSE(talk.reads()) << "one request a connection";
  EXPECT_EQ(talk.received("\n"), std::nullopt);
  talk.answer("yes", Then::end, kStart);
  EXPECT_EQ(written(talk), "yes\n");
  EXPECT_TRUE(talk.ended());
}

TEST(ControlTalk, AnEmptyLineIsALine) {
  ControlTalk talk(kStart);
  EXPECT_EQ(talk.received("\n"), "");
}

TEST(ControlTalk, TakesNoMoreThanALineMayHave) {
  ControlTalk whole(kStart);
  const std::string longest(ControlTalk::kLongestRequest, 'x');
  EXPECT_EQ(whole.received(longest + "\n"), longest);
  ControlTalk beyond(kStart);
  EXPECT_EQ(beyond.received(longest), std::nullopt);
  EXPECT_FALSE(beyond.too_long());
  EXPECT_EQ(beyond.received("x\n"), std::nullopt);
  EXPECT_TRUE(beyond.too_long());
  EXPECT_FALSE(beyond.reads()) << "nothing more of it is taken into memory";
  beyond.answer("no", Then::end, kStart);
  EXPECT_EQ(written(beyond), "no\n");
  EXPECT_TRUE(beyond.ended());
}

TEST(ControlTalk, EndsWithAHalfLine) {
  ControlTalk talk(kStart);
  EXPECT_EQ(talk.received("{\"command\""), std::nullopt);
  talk.closed();
  EXPECT_TRUE(talk.ended());
}

TEST(ControlTalk, ACallerThatClosedItsSideStillGetsItsAnswer) {
  ControlTalk talk(kStart);
  ASSERT_TRUE(talk.received("x\n"));
  talk.closed();
  talk.answer("yes", Then::end, kStart);
  EXPECT_EQ(written(talk), "yes\n");
}

TEST(ControlTalk, HasATimeForTheRequestAndOneForTheAnswer) {
  ControlTalk silent(kStart);
  silent.tick(kStart + ControlTalk::kRequestTime - Duration(1));
  EXPECT_FALSE(silent.ended());
  EXPECT_EQ(silent.received("slow"), std::nullopt);
  silent.tick(kStart + ControlTalk::kRequestTime);
  EXPECT_TRUE(silent.ended()) << "a byte now and then prolongs nothing";

  ControlTalk deaf(kStart);
  ASSERT_TRUE(deaf.received("x\n"));
  deaf.answer("a long answer", Then::end, kStart + std::chrono::seconds(4));
  deaf.sent(3, kStart + std::chrono::seconds(5));
  EXPECT_EQ(deaf.unsent(), "ong answer\n");
  deaf.tick(deaf.deadline());
  EXPECT_TRUE(deaf.ended());
}

TEST(ControlTalk, WaitsForItsSecondLineWithoutATimeLimit) {
  ControlTalk talk(kStart);
  ASSERT_TRUE(talk.received("x\n"));
  talk.answer("draining", Then::second_line, kStart);
  EXPECT_EQ(written(talk), "draining\n");
  EXPECT_EQ(talk.deadline(), SteadyTime::max());
  talk.tick(kStart + std::chrono::hours(5));
  EXPECT_FALSE(talk.ended());
  EXPECT_TRUE(talk.reads()) << "to notice that the caller has gone";
  EXPECT_EQ(talk.received("more"), std::nullopt);
  talk.second_line("drained", kStart + std::chrono::hours(5));
  EXPECT_EQ(written(talk, kStart + std::chrono::hours(5)), "drained\n");
  EXPECT_TRUE(talk.ended());
}

TEST(ControlTalk, TheSecondLineMayComeBeforeTheFirstIsWritten) {
  ControlTalk talk(kStart);
  ASSERT_TRUE(talk.received("x\n"));
  talk.answer("draining", Then::second_line, kStart);
  talk.sent(2, kStart);
  talk.second_line("drained", kStart);
  EXPECT_EQ(written(talk), "aining\ndrained\n");
  EXPECT_TRUE(talk.ended());
}

TEST(ControlTalk, TellsASecondLineOnlyToThoseWhoWait) {
  ControlTalk talk(kStart);
  talk.second_line("drained", kStart);
  ASSERT_TRUE(talk.received("x\n"));
  talk.second_line("drained", kStart);
  talk.answer("yes", Then::end, kStart);
  talk.second_line("drained", kStart);
  EXPECT_EQ(written(talk), "yes\n");
}

TEST(ControlTalk, ACallerThatWaitsAndGoesIsGone) {
  ControlTalk talk(kStart);
  ASSERT_TRUE(talk.received("x\n"));
  talk.answer("draining", Then::second_line, kStart);
  written(talk);
  talk.closed();
  EXPECT_TRUE(talk.ended());
}

TEST(ControlProtocol, RequestsComeBackAsTheyWere) {
  for (const ControlVerb verb :
       {ControlVerb::about, ControlVerb::look, ControlVerb::reload, ControlVerb::drain, ControlVerb::cancel_running}) {
    const auto read = decode_request(encode(ControlRequest{verb, "a \"strange\"\n\xff id", true}));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->verb, verb);
    EXPECT_EQ(read->message, "a \"strange\"\n\xEF\xBF\xBD id");
    EXPECT_TRUE(read->wait);
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
  EXPECT_NE(why("").find("is not one line of JSON"), std::string::npos);
  EXPECT_NE(why("GET / HTTP/1.1\r").find("is not one line of JSON"), std::string::npos);
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

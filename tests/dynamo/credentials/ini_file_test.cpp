#include <gmock/gmock.h>

#include "dynamo/settings.hpp"

namespace sluice::dynamo {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string value_of(std::string_view text, const std::string& section, const std::string& name) {
  const auto file = parse_ini(text, "f");
  return file ? file->at(section).at(name) : file.error().message;
}

std::string failure_of(std::string_view text) {
  const auto file = parse_ini(text, "config");
  return file ? "" : file.error().message;
}

TEST(IniFile, ReadsSectionsAndProperties) {
  EXPECT_EQ(value_of("[a]\nKey = Value \n", "a", "key"), "Value");
  EXPECT_EQ(value_of("[a]\r\nkey=value\r\n", "a", "key"), "value");
  EXPECT_EQ(value_of("[a]\nkey=a=b==", "a", "key"), "a=b==");
  EXPECT_EQ(value_of("[a]\nkey=", "a", "key"), "");
  EXPECT_EQ(value_of("\xEF\xBB\xBF[a]\nkey=v", "a", "key"), "v");
}

TEST(IniFile, SkipsComments) {
  EXPECT_EQ(value_of("# c\n; c\n\n[a] # c\n  # c\nkey = v # c\n", "a", "key"), "v");
  EXPECT_EQ(value_of("[a]\nkey = v;w#x ; c\n", "a", "key"), "v;w#x");
  EXPECT_EQ(value_of("[a]\nkey = # none\n", "a", "key"), "");
  EXPECT_EQ(value_of("[a]\nkey = #", "a", "key"), "");
}

TEST(IniFile, SqueezesHeadingsAndDropsTheirQuotes) {
  for (const char* heading : {"[profile dev]", "[ profile\t dev ]", "[profile \"dev\"]", "[profile 'dev'] ; c"}) {
    EXPECT_EQ(value_of(std::string(heading) + "\nk=v", "profile dev", "k"), "v") << heading;
  }
  EXPECT_EQ(value_of("[profile \"my dev\"]\nk=v", "profile my dev", "k"), "v");
}

TEST(IniFile, MergesSectionsThatComeTwice) {
  const auto file = parse_ini("[a]\nx=1\ny=1\n[b]\nx=9\n[a]\ny=2\ny=3\n", "f");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->at("a").at("x"), "1");
  EXPECT_EQ(file->at("a").at("y"), "3");
}

TEST(IniFile, ReadsNestedPropertiesAndContinuedValues) {
  const char* text =
      "[services s]\ndynamodb =\n  endpoint_url = http://x:1\n  other = 2\nsts=\n\tendpoint_url=http://y\n";
  EXPECT_EQ(value_of(text, "services s", "dynamodb.endpoint_url"), "http://x:1");
  EXPECT_EQ(value_of(text, "services s", "dynamodb.other"), "2");
  EXPECT_EQ(value_of(text, "services s", "sts.endpoint_url"), "http://y");
  EXPECT_EQ(value_of("[a]\nkey = one\n  two\n", "a", "key"), "one\ntwo");
}

TEST(IniFile, NamesTheLineItCannotRead) {
  EXPECT_THAT(failure_of("[a]\nkey = v\n[b\n"), HasSubstr("config:3: the section's heading has no ']'"));
  EXPECT_THAT(failure_of("key = v\n"), HasSubstr("config:1: this line stands before the first [section]"));
  EXPECT_THAT(failure_of("[]\n"), HasSubstr("heading is empty"));
  EXPECT_THAT(failure_of("[a] b\n"), HasSubstr("text behind"));
  EXPECT_THAT(failure_of("[a]\n= v\n"), HasSubstr("not of the form"));
  EXPECT_THAT(failure_of("[a]\n  x = 1\n"), HasSubstr("no property above"));
  EXPECT_THAT(failure_of("[a]\nk=\n  nonsense\n"), HasSubstr("not of the form"));
}

TEST(IniFile, NeverRepeatsALineInAMessage) {
  EXPECT_THAT(failure_of("[default]\nwJalrXUtnFEMIsecret\n"), Not(HasSubstr("secret")));
}

TEST(Profiles, ReadBothFilesAndPreferTheCredentials) {
  const auto profiles =
      Profiles::parse("[default]\nregion=eu-west-1\naws_access_key_id=old\n[profile dev]\nregion=x\n[ignored]\na=b\n",
                      "[default]\naws_access_key_id=new\n[only]\naws_access_key_id=o\n");
  ASSERT_TRUE(profiles);
  EXPECT_EQ(profiles->profile("default")->at("region"), "eu-west-1");
  EXPECT_EQ(profiles->profile("default")->at("aws_access_key_id"), "new");
  EXPECT_NE(profiles->profile("dev"), nullptr);
  EXPECT_NE(profiles->profile("only"), nullptr);
  EXPECT_EQ(profiles->profile("ignored"), nullptr);  // the config file wants "profile ignored"
  EXPECT_EQ(profiles->profile("none"), nullptr);
}

TEST(Profiles, AnEmptySectionOfTheCredentialsIsAProfile) {
  const auto profiles = Profiles::parse("", "[empty]\n[full]\naws_access_key_id=o\n");
  ASSERT_TRUE(profiles);
  ASSERT_NE(profiles->profile("empty"), nullptr);
  EXPECT_TRUE(profiles->profile("empty")->empty());
  EXPECT_NE(profiles->profile("full"), nullptr);
}

TEST(Profiles, PreferTheProfileFormOfDefault) {
  const auto profiles = Profiles::parse("[profile default]\nregion=right\n[default]\nregion=wrong\nextra=1\n", "");
  ASSERT_TRUE(profiles);
  EXPECT_EQ(profiles->profile("default")->at("region"), "right");
  EXPECT_FALSE(profiles->profile("default")->contains("extra"));
}

}  // namespace
}  // namespace sluice::dynamo

#include <gtest/gtest.h>

#include "host/stores/outbox/mysql/mysql_database.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

std::string shown(const std::string& url) {
  const auto address = parse_url(url);
  if (address.has_error()) {
    return "error";
  }
  return address->user + "|" + address->password + "|" +
         (address->socket.empty() ? address->host + "|" + std::to_string(address->port) : address->socket) + "|" +
         address->database + "|" + std::to_string(static_cast<int>(address->tls));
}

TEST(MysqlUrl, ReadsOurForm) {
  EXPECT_EQ(shown("mysql://u:p@h:3307/d"), "u|p|h|3307|d|0");
  EXPECT_EQ(shown("mysql://u@h/d"), "u||h|3306|d|0");
  EXPECT_EQ(shown("mysql://h/d"), "||h|3306|d|0");
  EXPECT_EQ(shown("mysql://u:p%40%2F%3a@h/d"), "u|p@/:|h|3306|d|0");
  EXPECT_EQ(shown("mysql://u:p@ss@h/d"), "u|p@ss|h|3306|d|0");
  EXPECT_EQ(shown("mysql://u:p@[::1]:3307/d?tls=true"), "u|p|::1|3307|d|3");
}

TEST(MysqlUrl, ReadsGosForm) {
  EXPECT_EQ(shown("u:p@tcp(h:3307)/d?parseTime=true&loc=Local"), "u|p|h|3307|d|0");
  EXPECT_EQ(shown("mysql://u:p@tcp(h)/d"), "u|p|h|3306|d|0");
  EXPECT_EQ(shown("u:p@/x%@tcp(h:1)/d"), "u|p@/x%|h|1|d|0") << "as it is typed: nothing is decoded";
  EXPECT_EQ(shown("u:p@unix(/run/my.sock)/d"), "u|p|/run/my.sock|d|0");
  EXPECT_EQ(shown("mysql://u:p@mysql+tcp(h:3306)/d?tls=skip-verify"), "u|p|h|3306|d|2");
  EXPECT_EQ(shown("u:p@tcp([::1]:3306)/d?tls=preferred"), "u|p|::1|3306|d|1");
}

TEST(MysqlUrl, RefusesWhatIsNeitherAndShowsNothingOfIt) {
  for (const char* url :
       {"", "mysql://", "mysql://u:secret@h", "mysql://u:secret@h/", "u:secret@h/d", "postgres://u:secret@h/d",
        "mysql://u:secret@h:0/d", "mysql://u:secret@h:99999/d", "mysql://u:secret@h:x/d", "mysql://u:secret%zz@h/d",
        "u:secret@tcp(h:1/d", "u:secret@pipe(x)/d", "mysql://u:secret@h/d?tls=custom", "mysql://u:7/secret?x@h/d",
        "mysql://u:7/x?secret@h/d", "mysql://u:7?secret/x@h/d", "mysql://u:se/secret?@h/d"}) {
    const auto address = parse_url(url);
    ASSERT_TRUE(address.has_error()) << url;
    EXPECT_EQ(address.error().code(), ErrorCode::invalid);
    EXPECT_EQ(address.error().message().find("secret"), std::string::npos) << url;
  }
}

TEST(MysqlUrl, LetsSettingsWin) {
  Settings settings{.config = {.url = "mysql://u:p@h/d?tls=skip-verify", .username = "me", .password = "word"}};
  settings.config.tls.emplace();
  const auto address = address_of(settings);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->user, "me");
  EXPECT_EQ(address->password, "word");
  EXPECT_EQ(address->tls, TlsUse::checked);
  EXPECT_EQ(address->place(), "mysql://h:3306/d") << "no user and no password";
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql

#include <gtest/gtest.h>

#include "host/queue/error_groups.hpp"

namespace sluice::queue {
namespace {

TEST(Fingerprint, FoldsWhatDiffersFromOneFailureToTheNext) {
  EXPECT_EQ(folded_error("timed out after 1503 ms"), "timed out after # ms");
  EXPECT_EQ(folded_error("timed out after 3h15m30s, 2 of 17"), "timed out after #h#m#s, # of #");
  EXPECT_EQ(folded_error("no customer 6fa459ea-ee8a-3ca4-894e-db77e160355e"), "no customer <uuid>");
  EXPECT_EQ(folded_error("order A-101 is closed"), "order A-# is closed");
  EXPECT_EQ(folded_error("no object k3v9x2q in the index"), "no object <id> in the index");
  EXPECT_EQ(folded_error("at 0x7ffe01a3: digest deadbeef01"), "at <hex>: digest <hex>");
  EXPECT_EQ(folded_error("connect to 10.0.3.17:5432: refused"), "connect to <address>: refused");
  EXPECT_EQ(folded_error("connect to [::1]:443 failed, fe80::17:2 too"), "connect to <address> failed, <address> too");
  EXPECT_EQ(folded_error("mail to ann.b+x@example.org bounced"), "mail to <address> bounced");
  EXPECT_EQ(folded_error("cannot read /var/lib/app/17/part.txt: no such file"), "cannot read <path>: no such file");
  EXPECT_EQ(folded_error("GET https://api-3.example.org/v1/orders/77?x=5 gave 503"),
            "GET https://api-#.example.org<path>?x=# gave #");
  EXPECT_EQ(folded_error("expired at 2026-01-31T12:00:00.123Z, seen 2026-02-01 09:10:11+02:00"),
            "expired at <time>, seen <time>");
  EXPECT_EQ(folded_error("1.5 of 1,500.25 read"), "# of # read");
}

TEST(Fingerprint, LeavesWordsAlone) {
  EXPECT_EQ(folded_error("read/write and/or deadbeef facade"), "read/write and/or deadbeef facade");
  EXPECT_EQ(folded_error("  two   spaces\tand a tab  \nsecond line"), "two spaces and a tab");
  EXPECT_EQ(folded_error("ungültig: Straße 17"), "ungültig: Straße #");
  EXPECT_EQ(folded_error(""), "");
  EXPECT_EQ(folded_error("a :: b"), "a :: b");
}

TEST(Fingerprint, FoldingTwiceChangesNothing) {
  for (const char* const error :
       {"no customer 6fa459ea-ee8a-3ca4-894e-db77e160355e at 10.0.0.1", "x 17 /a/b/c y 2026-01-31 z deadbeef01 k3v9x2q",
        "1.2.3.4.5", "https://h/a/b 0x1 a@b"}) {
    const std::string once = folded_error(error);
    EXPECT_EQ(folded_error(once), once);
  }
}

TEST(Fingerprint, IsTheSameForOneCauseAndAnotherForAnother) {
  const std::string one = fingerprint_of("timed out after 1503 ms at 10.0.0.1:80");
  EXPECT_TRUE(is_fingerprint(one)) << one;
  EXPECT_EQ(one, fingerprint_of("timed out after 7 ms at 192.168.17.2:8080"));
  EXPECT_EQ(one, fingerprint_of(folded_error("timed out after 1503 ms at 10.0.0.1:80")));
  EXPECT_NE(one, fingerprint_of("timed out after 1503 s at 10.0.0.1:80"));
  EXPECT_EQ(fingerprint_of("x"), "af63f54c") << "it stands in scripts: it must never change";
  EXPECT_FALSE(is_fingerprint("timeout!"));
  EXPECT_FALSE(is_fingerprint("af63f54"));
}

TEST(Fingerprint, LooksAtTheBeginningOfALongText) {
  const std::string start(390, 'x');
  EXPECT_EQ(fingerprint_of(start + " " + std::string(3000, 'a')), fingerprint_of(start + " " + std::string(2000, 'a')));
}

}  // namespace
}  // namespace sluice::queue

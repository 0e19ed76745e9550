#include <sys/stat.h>

#include "config/files.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

const Environment kNothing = environment_of({});

std::string job_text(const std::string& more = "") { return "[job]\nqueue = 'orders'\nhandler = 'log'\n" + more; }

HostConfig host_in(const TemporaryFolder& folder, const std::string& text = "") {
  return value_of(load_host_config(folder.write("host.toml", text), kNothing));
}

std::vector<std::string> job_names(const HostConfig& host) {
  std::vector<std::string> names;
  for (const JobConfig& job : value_of(load_jobs(host))) {
    names.push_back(job.name);
  }
  return names;
}

TEST(Load, ReadsJobsInNameOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"c", "a", "b"}) {
    folder.write("jobs.d/" + std::string(name) + ".toml", job_text());
  }
  folder.write("jobs.d/.hidden.toml", "not toml");
  folder.write("jobs.d/a.toml~", "not toml");
  folder.write("jobs.d/sub/d.toml", "not toml");
  EXPECT_EQ(job_names(host_in(folder)), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Load, ReadsAFileOnceThatTwoPatternsName) {
  const TemporaryFolder folder;
  folder.write("jobs.d/a.toml", job_text());
  EXPECT_EQ(job_names(host_in(folder, "[host]\njobs = ['jobs.d/*.toml', './jobs.d/a.toml', 'jobs.d/?.toml']")),
            std::vector<std::string>{"a"});
}

TEST(Load, FollowsLinksAsMountedConfigMapsHaveThem) {
  const TemporaryFolder folder;
  folder.write("jobs.d/..2026/a.toml", job_text());
  std::filesystem::create_directory_symlink("..2026", folder.path() / "jobs.d/..data");
  std::filesystem::create_symlink("..data/a.toml", folder.path() / "jobs.d/a.toml");
  EXPECT_EQ(job_names(host_in(folder)), std::vector<std::string>{"a"});
}

TEST(Load, TakesAPatternThatMatchesNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(job_names(host_in(folder)).empty());
  std::filesystem::create_directory(folder.path() / "jobs.d");
  EXPECT_TRUE(job_names(host_in(folder)).empty());
}

TEST(Load, RefusesANamedFileThatIsNotThere) {
  const TemporaryFolder folder;
  const HostConfig host = host_in(folder, "[host]\njobs = ['orders.toml']");
  EXPECT_EQ(errors_text(load_jobs(host)), folder.path().string() + "/host.toml:2:9: 'jobs' names " +
                                              folder.path().string() + "/orders.toml, and there is no such file\n")
      << "at the place where it is named";
  folder.write("jobs.d/a.toml", job_text());
  const HostConfig more = host_in(folder, "[host]\njobs = ['orders.toml', 'jobs.d/*.toml']");
  EXPECT_EQ(load_job_files(more, kNothing).jobs.size(), 1U) << "the others are read all the same";
}

TEST(Load, NamesTheLineOfAFolderThatCannotBeListed) {
  const TemporaryFolder folder;
  folder.write("jobs.d", "a file");
  const HostConfig host = host_in(folder, "[host]\njobs = ['none/*.toml',\n 'jobs.d/*.toml']");
  EXPECT_EQ(errors_text(load_jobs(host)),
            host.file + ":3:2: cannot list '" + (folder.path() / "jobs.d").string() + "' for jobs: Not a directory\n");
}

TEST(Load, WorksInAFolderWhoseNameLooksLikeAPattern) {
  const TemporaryFolder folder;
  folder.write("a*b?/host.toml", "");
  folder.write("a*b?/jobs.d/a.toml", job_text());
  const HostConfig host = value_of(load_host_config((folder.path() / "a*b?/host.toml").string(), kNothing));
  EXPECT_EQ(job_names(host), std::vector<std::string>{"a"});
}

TEST(Load, ReportsAllErrorsOfAllFiles) {
  const TemporaryFolder folder;
  const std::string a = folder.write("jobs.d/a.toml", "[job]\nqueue = 'orders'\nhandlr = 'log'\n");
  const std::string b = folder.write("jobs.d/b.toml", "[job\n");
  folder.write("jobs.d/c.toml", job_text());
  const std::string d = folder.write("jobs.d/d.toml", job_text("name = 'c'\n"));
  std::filesystem::create_directory(folder.path() / "jobs.d/e.toml");
  const std::string errors = errors_text(load_jobs(host_in(folder)));
  EXPECT_NE(errors.find(a + ":1:2: [job] has no 'handler'"), std::string::npos) << errors;
  EXPECT_NE(errors.find(a + ":3:1: unknown key 'handlr' in [job]; did you mean 'handler'?"), std::string::npos)
      << errors;
  EXPECT_NE(errors.find(b + ":1:"), std::string::npos) << errors;
  EXPECT_NE(errors.find(d + ":4:8: the job name 'c' is taken by " + folder.path().string() + "/jobs.d/c.toml;"),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find("e.toml: is a folder, not a file"), std::string::npos) << errors;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 5) << errors;
}

TEST(Load, GivesTheGoodJobsBesideTheErrors) {
  const TemporaryFolder folder;
  folder.write("jobs.d/a.toml", "[job\n");
  folder.write("jobs.d/b.toml", job_text());
  const JobFiles files = load_job_files(host_in(folder), kNothing);
  ASSERT_EQ(files.jobs.size(), 1U);
  EXPECT_EQ(files.jobs[0].name, "b");
  EXPECT_EQ(files.errors.size(), 1U);
}

TEST(Load, ChecksThatAQueueCanBeATable) {
  const TemporaryFolder folder;
  folder.write("jobs.d/a.toml", "[job]\nqueue = 'q'\nhandler = 'log'\n");
  EXPECT_EQ(errors_text(load_jobs(host_in(folder))), "");
  EXPECT_NE(errors_text(load_jobs(host_in(folder, "[store]\nkind = 'dynamodb'\n[queues.q]\nlayout = 'dynamomq'")))
                .find("a.toml:2:9: "),
            std::string::npos);
  EXPECT_EQ(errors_text(load_jobs(host_in(folder, "[store]\nkind = 'dynamodb'\n[queues.q]\ntable = 'abc'"))), "");
  folder.write("jobs.d/a.toml", "[job]\nqueues = ['orders:2', 'q']\nhandler = 'log'\n");
  EXPECT_NE(errors_text(load_jobs(host_in(folder, "[store]\nkind = 'dynamodb'\n[queues.q]\nlayout = 'dynamomq'")))
                .find("the queue's name 'q' cannot be a table's"),
            std::string::npos)
      << "whichever of several it is";
}

TEST(Load, RefusesWhatIsNoReadableFile) {
  const TemporaryFolder folder;
  const std::string base = folder.path().string();
  EXPECT_EQ(errors_text(load_host_config(base + "/none.toml", kNothing)), base + "/none.toml: there is no such file\n");
  EXPECT_EQ(errors_text(load_host_config(base, kNothing)), base + ": is a folder, not a file\n");
  EXPECT_NE(errors_text(load_host_config("", kNothing)), "");
  ASSERT_EQ(::mkfifo((base + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(errors_text(load_host_config(base + "/fifo", kNothing)), base + "/fifo: is not a regular file\n");
  EXPECT_EQ(errors_text(load_host_config("/dev/null", kNothing)), "/dev/null: is not a regular file\n");
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  EXPECT_NE(errors_text(load_host_config(base + "/loop", kNothing)), "");
  const std::string big = folder.write("big.toml", std::string(10 * 1024 * 1024, '#'));
  EXPECT_EQ(errors_text(load_host_config(big, kNothing)),
            big + ": is larger than 1 MiB, the limit for a configuration file\n");
}

TEST(Load, RefusesAFileThatMayNotBeRead) {
  const TemporaryFolder folder;
  const std::string file = folder.write("host.toml", "");
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  // Root may read every file, so root becomes somebody else for a moment.
  const uid_t self = ::geteuid();
  ASSERT_TRUE(self != 0 || ::seteuid(65534) == 0);
  const std::string errors = errors_text(load_host_config(file, kNothing));
  ASSERT_TRUE(self != 0 || ::seteuid(0) == 0);
  EXPECT_EQ(errors, file + ": cannot be read: Permission denied\n");
}

TEST(Load, LimitsTheNumberOfJobFiles) {
  const TemporaryFolder folder;
  for (int i = 0; i < 1025; ++i) {
    folder.write("jobs.d/" + std::to_string(i) + ".toml", "");
  }
  EXPECT_NE(errors_text(load_jobs(host_in(folder))).find("names 1025 files"), std::string::npos);
}

TEST(Files, MatchPatterns) {
  const TemporaryFolder folder;
  for (const char* name : {"a.toml", "ab.toml", "a.toml~", "aXbXc", "abcbc", "[a].toml", ".hidden.toml"}) {
    folder.write(name, "");
  }
  const auto matched = [&](const std::string& pattern) {
    HostConfig host;
    host.jobs = {(folder.path() / pattern).string()};
    std::string names;
    for (const std::string& file : match_files(host).files) {
      names += std::filesystem::path(file).filename().string() + " ";
    }
    return names;
  };
  EXPECT_EQ(matched("*.toml"), "[a].toml a.toml ab.toml ");
  EXPECT_EQ(matched("?.t*l"), "a.toml ");
  EXPECT_EQ(matched("?.toml?"), "a.toml~ ");
  EXPECT_EQ(matched("a*b*c"), "aXbXc abcbc ");
  EXPECT_EQ(matched("a*bc"), "abcbc ");
  EXPECT_EQ(matched("[a]*.toml"), "[a].toml ");
  EXPECT_EQ(matched(".h*"), ".hidden.toml ");
  EXPECT_EQ(matched("a*a*a*a*a*a*a*a*b"), "");
}

}  // namespace
}  // namespace sluice::config

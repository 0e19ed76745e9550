#include "host/plugin/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sluice::plugin {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#else
#error "name this machine's ELF number here"
#endif
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
constexpr std::uint16_t kSegmentLimit = 1024;

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "arm64";
    case EM_RISCV:
      return "RISC-V";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit ARM";
    default:
      return "machine number " + std::to_string(machine);
  }
}

/// A file open for reading; closed at the end of the scope.
class OpenFile {
 public:
  explicit OpenFile(const std::string& file) : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool read(void* data, std::size_t size, std::uint64_t offset) const {
    return ::pread(descriptor_, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

 private:
  int descriptor_;
};

bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t file_size) {
  return offset <= file_size && size <= file_size - offset;
}

/// True when everything that the header promises is inside the file.
bool is_whole(const OpenFile& file, const Elf64_Ehdr& header, std::uint64_t file_size) {
  if (!within(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, file_size) ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > kSegmentLimit) {
    return false;
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!file.read(segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff)) {
    return false;
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && !within(segment.p_offset, segment.p_filesz, file_size)) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> refuse_header(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder || header.e_machine != kMachine) {
    return "is built for " + machine_name(header.e_machine) + ", and this machine is " + machine_name(kMachine) +
           ": build it for this machine";
  }
  if (header.e_type != ET_DYN) {
    return std::string("is an ELF ") +
           (header.e_type == ET_REL    ? "object file"
            : header.e_type == ET_EXEC ? "program"
                                       : "file") +
           ", not a shared object: build it with sluice_add_plugin";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refuse_file(const std::string& path) {
  const OpenFile file(path);
  struct stat status {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &status) != 0) {
    return std::string("cannot be read: ") + std::strerror(errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return std::string(S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file") +
           ", not a plugin: give it another name or move it away";
  }
  if (status.st_size == 0) {
    return "is empty: build or copy it again";
  }
  Elf64_Ehdr header{};
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  if (!file.read(&header, sizeof(header), 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is not an ELF shared object: a plugin is what sluice_add_plugin builds";
  }
  if (auto refusal = refuse_header(header)) {
    return refusal;
  }
  if (!is_whole(file, header, file_size)) {
    return "is cut off or damaged: copy it again (to another name, then move it here)";
  }
  return std::nullopt;
}

}  // namespace sluice::plugin

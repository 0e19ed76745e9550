#include "host/plugin/elf_file.hpp"

#include <ar.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/ranges.hpp"

namespace sluice::plugin {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
constexpr std::uint32_t kRelative = R_X86_64_RELATIVE;
constexpr std::uint32_t kAbsolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
constexpr std::uint32_t kRelative = R_AARCH64_RELATIVE;
constexpr std::uint32_t kAbsolute = R_AARCH64_ABS64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
constexpr std::uint32_t kRelative = R_RISCV_RELATIVE;
constexpr std::uint32_t kAbsolute = R_RISCV_64;
#else
#error "name this machine's ELF numbers here"
#endif
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
constexpr std::uint16_t kSegmentLimit = 1024;
constexpr std::size_t kNoteLimit = 256;
/// As kTableLimit, of a table of symbols that is not loaded.
constexpr std::uint64_t kSymbolsLimit = std::uint64_t{256} << 20U;
/// Those of templates are long, and a longer one helps nobody.
constexpr std::uint64_t kFunctionNameLimit = std::uint64_t{64} << 10U;
// Packed relative relocations, which elf.h of Debian 12 knows and older ones do not.
constexpr std::int64_t kRelr = 36;
constexpr std::int64_t kRelrSize = 35;

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "arm64";
    case EM_RISCV:
      return "RISC-V";
    case EM_386:
      return "x86";
    case EM_ARM:
      return "ARM";
    default:
      return "machine number " + std::to_string(machine);
  }
}

/// The numbers of a file are in its own byte order.
std::string machine_of(const Elf64_Ehdr& header) {
  const bool swapped = header.e_ident[EI_DATA] != kByteOrder;
  return std::string(header.e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit " : "") +
         (!swapped                    ? ""
          : kByteOrder == ELFDATA2LSB ? "big-endian "
                                      : "little-endian ") +
         machine_name(swapped ? __builtin_bswap16(header.e_machine) : header.e_machine);
}

bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

std::optional<std::string> refuse_header(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder || header.e_machine != kMachine) {
    return "is built for " + machine_of(header) + ", and this machine is " + machine_name(kMachine) +
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

template <typename T>
T value_at(const std::string& bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::uint64_t aligned(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

/// Appends the notes of one segment, as far as they make sense.
void add_notes(const std::string& bytes, std::uint64_t alignment, std::vector<ElfNote>& notes) {
  std::uint64_t at = 0;
  while (within(at, sizeof(Elf64_Nhdr), bytes.size()) && notes.size() < kNoteLimit) {
    const auto head = value_at<Elf64_Nhdr>(bytes, at);
    const std::uint64_t owner = at + sizeof(head);
    const std::uint64_t content = aligned(owner + head.n_namesz, alignment);
    if (!within(owner, head.n_namesz, bytes.size()) || !within(content, head.n_descsz, bytes.size())) {
      return;
    }
    std::string name = bytes.substr(owner, head.n_namesz);
    name.resize(std::min(name.size(), name.find('\0')));
    notes.push_back({std::move(name), head.n_type, bytes.substr(content, head.n_descsz)});
    at = aligned(content + head.n_descsz, alignment);
  }
}

bool is_shown(const Elf64_Sym& symbol) {
  const unsigned char binding = ELF64_ST_BIND(symbol.st_info);
  const unsigned char visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

}  // namespace

Result<std::unique_ptr<ElfFile>> ElfFile::open(const std::string& path) {
  std::unique_ptr<ElfFile> elf(new ElfFile(Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))));
  if (auto why = elf->refuse()) {
    return Error(ErrorCode::invalid, std::move(*why));
  }
  elf->read_dynamic();
  elf->read_symbols();
  elf->read_relocations();
  return elf;
}

std::optional<std::string> ElfFile::refuse() {
  struct stat status {};
  if (!file_.open() || ::fstat(file_.get(), &status) != 0) {
    return std::string("cannot be read: ") + std::strerror(errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return std::string(S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file") +
           ", not a plugin: give it another name or move it away";
  }
  if (status.st_size == 0) {
    return "is empty: build or copy it again";
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (size_ > kPluginSizeLimit) {
    return "has " + std::to_string(size_ >> 20U) + " MiB, and a plugin has " + std::to_string(kPluginSizeLimit >> 20U) +
           " at most: copy it again, or split it";
  }
  std::array<char, SARMAG> start{};
  if (read(0, start.data(), start.size()) && std::memcmp(start.data(), ARMAG, SARMAG) == 0) {
    return "is a static library, which cannot be loaded: build it with sluice_add_plugin";
  }
  if (!read(0, &header_, sizeof(header_)) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is not an ELF shared object: a plugin is what sluice_add_plugin builds";
  }
  if (auto refusal = refuse_header(header_)) {
    return refusal;
  }
  if (!is_whole()) {
    return "is cut off or damaged: copy it again (to another name, then move it here)";
  }
  return std::nullopt;
}

bool ElfFile::read(std::uint64_t offset, void* data, std::uint64_t size) const {
  return within(offset, size, size_) &&
         ::pread(file_.get(), data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

template <typename T>
std::optional<std::vector<T>> ElfFile::array(std::uint64_t offset, std::uint64_t count, std::uint64_t limit) const {
  if (count > std::min(size_, limit) / sizeof(T)) {
    return std::nullopt;
  }
  std::vector<T> elements(count);
  return read(offset, elements.data(), count * sizeof(T)) ? std::optional(std::move(elements)) : std::nullopt;
}

template <typename T>
std::vector<T> ElfFile::array_at(std::uint64_t address, std::uint64_t size) const {
  // A tag that is not there has the address 0, where the file itself begins.
  const auto place = address == 0 ? std::nullopt : offset_of(address);
  return place && size <= place->second ? array<T>(place->first, size / sizeof(T)).value_or(std::vector<T>())
                                        : std::vector<T>();
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> ElfFile::offset_of(std::uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      const std::uint64_t behind = address - segment.p_vaddr;
      return std::pair(segment.p_offset + behind, segment.p_filesz - behind);
    }
  }
  return std::nullopt;
}

/// True when everything that the header promises is inside the file.
bool ElfFile::is_whole() {
  if (!within(header_.e_shoff, std::uint64_t{header_.e_shnum} * header_.e_shentsize, size_) ||
      header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 || header_.e_phnum > kSegmentLimit) {
    return false;
  }
  auto segments = array<Elf64_Phdr>(header_.e_phoff, header_.e_phnum);
  if (!segments) {
    return false;
  }
  segments_ = std::move(*segments);
  if (header_.e_shentsize == sizeof(Elf64_Shdr)) {
    sections_ = array<Elf64_Shdr>(header_.e_shoff, header_.e_shnum).value_or(std::vector<Elf64_Shdr>());
  }
  return std::all_of(segments_.begin(), segments_.end(), [this](const Elf64_Phdr& segment) {
    return segment.p_type != PT_LOAD || within(segment.p_offset, segment.p_filesz, size_);
  });
}

bool ElfFile::stripped() const {
  return std::none_of(sections_.begin(), sections_.end(),
                      [](const Elf64_Shdr& section) { return section.sh_type == SHT_SYMTAB; });
}

/// Null: it has none.
const Elf64_Shdr* ElfFile::table_of_functions() const {
  const std::uint32_t wanted = stripped() ? SHT_DYNSYM : SHT_SYMTAB;
  const auto* const table =
      find_where(sections_, [wanted](const Elf64_Shdr& section) { return section.sh_type == wanted; });
  return table != nullptr && table->sh_link < sections_.size() ? table : nullptr;
}

std::vector<Elf64_Sym> ElfFile::functions() const {
  const Elf64_Shdr* const table = table_of_functions();
  auto symbols = table == nullptr
                     ? std::nullopt
                     : array<Elf64_Sym>(table->sh_offset, table->sh_size / sizeof(Elf64_Sym), kSymbolsLimit);
  auto functions = symbols ? *std::move(symbols) : std::vector<Elf64_Sym>();
  std::erase_if(functions, [](const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0;
  });
  return functions;
}

std::string ElfFile::name_of(const Elf64_Sym& function) const {
  const Elf64_Shdr* const table = table_of_functions();
  const Elf64_Shdr names = table == nullptr ? Elf64_Shdr{} : sections_[table->sh_link];
  if (function.st_name >= names.sh_size) {
    return {};
  }
  const auto text =
      array<char>(names.sh_offset + function.st_name, std::min(kFunctionNameLimit, names.sh_size - function.st_name));
  return text ? std::string(text->begin(), std::find(text->begin(), text->end(), '\0')) : std::string();
}

std::vector<ElfNote> ElfFile::notes() const {
  std::vector<ElfNote> notes;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_NOTE) {
      const auto bytes = array<char>(segment.p_offset, segment.p_filesz).value_or(std::vector<char>());
      add_notes({bytes.begin(), bytes.end()}, segment.p_align == 8 ? 8 : 4, notes);
    }
  }
  return notes;
}

void ElfFile::read_dynamic() {
  const auto is_dynamic = [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; };
  const auto* const found = find_where(segments_, is_dynamic);
  if (found == nullptr) {
    return;
  }
  dynamic_ = array<Elf64_Dyn>(found->p_offset, found->p_filesz / sizeof(Elf64_Dyn)).value_or(std::vector<Elf64_Dyn>());
  dynamic_.erase(std::find_if(dynamic_.begin(), dynamic_.end(), [](const auto& one) { return one.d_tag == DT_NULL; }),
                 dynamic_.end());
  const auto strings = array_at<char>(dynamic(DT_STRTAB), dynamic(DT_STRSZ));
  strings_.assign(strings.begin(), strings.end());
}

std::uint64_t ElfFile::dynamic(std::int64_t tag) const {
  const auto* const found = find_where(dynamic_, [tag](const Elf64_Dyn& one) { return one.d_tag == tag; });
  return found == nullptr ? 0 : found->d_un.d_val;
}

std::optional<std::string> ElfFile::string_at(std::uint64_t offset) const {
  const std::size_t end = offset < strings_.size() ? strings_.find('\0', offset) : std::string::npos;
  return end == std::string::npos ? std::nullopt : std::optional(strings_.substr(offset, end - offset));
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  for (const Elf64_Dyn& one : dynamic_) {
    if (one.d_tag == DT_NEEDED) {
      names.push_back(string_at(one.d_un.d_val).value_or("?"));
    }
  }
  return names;
}

/// The table itself does not say how long it is; the hash tables over it do.
std::uint64_t ElfFile::count_symbols() const {
  if (const auto head = array_at<std::uint32_t>(dynamic(DT_HASH), 8); head.size() == 2) {
    return head[1];
  }
  const std::uint64_t table = dynamic(DT_GNU_HASH);
  const auto head = array_at<std::uint32_t>(table, 16);
  if (head.size() != 4) {
    return 0;
  }
  const std::uint64_t buckets_at = table + 16 + std::uint64_t{head[2]} * 8;
  const auto buckets = array_at<std::uint32_t>(buckets_at, std::uint64_t{head[0]} * 4);
  const std::uint64_t first = head[1];
  const std::uint64_t last = buckets.empty() ? 0 : *std::max_element(buckets.begin(), buckets.end());
  if (last < first) {
    return 0;
  }
  const std::uint64_t chains_at = buckets_at + buckets.size() * 4;
  const auto place = offset_of(chains_at + (last - first) * 4);
  if (!place) {
    return 0;
  }
  // The last bucket's symbols are the last ones; a set lowest bit ends its chain.
  const auto chain = array<std::uint32_t>(place->first, std::min(place->second, kTableLimit) / 4)
                         .value_or(std::vector<std::uint32_t>());
  const auto end = std::find_if(chain.begin(), chain.end(), [](std::uint32_t hash) { return (hash & 1) != 0; });
  return end == chain.end() ? 0 : last + static_cast<std::uint64_t>(end - chain.begin()) + 1;
}

void ElfFile::read_symbols() {
  symbols_ = array_at<Elf64_Sym>(dynamic(DT_SYMTAB), count_symbols() * sizeof(Elf64_Sym));
  for (const Elf64_Sym& symbol : symbols_) {
    if (is_shown(symbol)) {
      if (auto name = string_at(symbol.st_name)) {
        exported_.push_back({std::move(*name), symbol.st_value, symbol.st_size});
      }
    }
  }
}

std::vector<std::string> ElfFile::undefined() const {
  std::vector<std::string> names;
  for (const Elf64_Sym& symbol : symbols_) {
    if (symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL) {
      if (auto name = string_at(symbol.st_name)) {
        names.push_back(std::move(*name));
      }
    }
  }
  return names;
}

void ElfFile::read_relocations() {
  relocations_ = array_at<Elf64_Rela>(dynamic(DT_RELA), dynamic(DT_RELASZ));
  std::sort(relocations_.begin(), relocations_.end(),
            [](const auto& a, const auto& b) { return a.r_offset < b.r_offset; });
  // An even entry is an address; an odd one is a map of the 63 words behind what was told before.
  std::uint64_t next = 0;
  for (const std::uint64_t entry : array_at<std::uint64_t>(dynamic(kRelr), dynamic(kRelrSize))) {
    const bool is_address = (entry & 1) == 0;
    words_in_place_.emplace_back(is_address ? entry : next, is_address ? 1 : entry >> 1);
    next = is_address ? entry + 8 : next + std::uint64_t{63} * 8;
  }
  std::sort(words_in_place_.begin(), words_in_place_.end());
}

std::optional<std::uint64_t> ElfFile::relocated(std::uint64_t address) const {
  const auto found = std::lower_bound(relocations_.begin(), relocations_.end(), address,
                                      [](const Elf64_Rela& one, std::uint64_t at) { return one.r_offset < at; });
  if (found == relocations_.end() || found->r_offset != address) {
    return std::nullopt;
  }
  const auto addend = static_cast<std::uint64_t>(found->r_addend);
  if (ELF64_R_TYPE(found->r_info) == kRelative) {
    return addend;
  }
  const std::uint64_t symbol = ELF64_R_SYM(found->r_info);
  const bool here =
      ELF64_R_TYPE(found->r_info) == kAbsolute && symbol < symbols_.size() && symbols_[symbol].st_shndx != SHN_UNDEF;
  // Of another file's symbol it is not known where that lies, only that it is there.
  return here ? symbols_[symbol].st_value + addend : UINT64_MAX;
}

bool ElfFile::relocated_in_place(std::uint64_t address) const {
  const auto behind = std::upper_bound(words_in_place_.begin(), words_in_place_.end(), std::pair(address, UINT64_MAX));
  if (behind == words_in_place_.begin()) {
    return false;
  }
  const auto& [first, words] = *std::prev(behind);
  const std::uint64_t word = (address - first) / 8;
  return (address - first) % 8 == 0 && word < 64 && (words >> word & 1) != 0;
}

const ElfSymbol* ElfFile::find_exported(std::string_view name) const {
  return find_where(exported_, [name](const ElfSymbol& symbol) { return symbol.name == name; });
}

std::optional<std::string> ElfFile::bytes_at(std::uint64_t address, std::uint64_t size) const {
  const auto place = offset_of(address);
  if (!place || size > place->second) {
    return std::nullopt;
  }
  std::string bytes(size, '\0');
  return read(place->first, bytes.data(), size) ? std::optional(std::move(bytes)) : std::nullopt;
}

std::optional<std::string> ElfFile::text_at(std::uint64_t address, std::uint64_t limit) const {
  const auto place = offset_of(address);
  auto text = place ? bytes_at(address, std::min(limit, place->second)) : std::nullopt;
  if (text) {
    const std::size_t end = text->find('\0');
    if (end == std::string::npos && text->size() < limit) {
      return std::nullopt;
    }
    text->resize(std::min(end, text->size()));
  }
  return text;
}

std::optional<std::uint64_t> ElfFile::pointer_at(std::uint64_t address) const {
  if (const auto target = relocated(address)) {
    return target;
  }
  const auto bytes = bytes_at(address, sizeof(std::uint64_t));
  if (!bytes) {
    return std::nullopt;
  }
  // Without a relocation the word stays as it is, which in a shared object can only mean nothing.
  const auto word = value_at<std::uint64_t>(*bytes, 0);
  return word == 0 || relocated_in_place(address) ? std::optional(word) : std::nullopt;
}

}  // namespace sluice::plugin

// Which JSON schemas llama.cpp converts to a grammar, and which instances that grammar accepts; beside
// crates/engine/src/completion/suites.rs. Written against the llama.cpp in the sdist of llama-cpp-python 0.3.36; from its folder
// vendor/llama.cpp:
//
//   g++ -std=c++17 -O1 -Icommon -Iinclude -Iggml/include -Isrc -Ivendor llama_schemas.cpp common/json-schema-to-grammar.cpp
//     common/json-schema.cpp common/json.cpp common/trie.cpp common/unicode.cpp src/llama-grammar.cpp -o llama_schemas
//
// `string_join`, `string_split` and `string_repeat` come from common/common.cpp; what else the linker misses is never called
// and may be empty. llama_schemas.py writes the files. Reads paths of schemas on standard input; PATH.tests has lines `1` (valid) or `0`, tab, text.
// Prints for each schema: ok, refused or unparsed; path; valid instances and those rejected; invalid ones and those accepted.
#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "unicode.h"
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>
std::vector<uint32_t> points(const std::string & s) {
    std::vector<uint32_t> out; size_t i = 0;
    while (i < s.size()) {
        unsigned char c = s[i]; int n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        uint32_t cp = n == 1 ? c : n == 2 ? c & 0x1f : n == 3 ? c & 0x0f : c & 0x07;
        for (int k = 1; k < n && i + k < s.size(); k++) cp = (cp << 6) | (s[i + k] & 0x3f);
        out.push_back(cp); i += n;
    }
    return out;
}
bool match(const std::string & text, llama_grammar * grammar) {
    for (auto cp : points(text)) {
        llama_grammar_accept(grammar, cp);
        auto & stacks = llama_grammar_get_stacks(grammar);
        if (stacks.empty()) return false;
        if (stacks.size() > 20000) return false;
    }
    for (auto & stack : llama_grammar_get_stacks(grammar)) if (stack.empty()) return true;
    return false;
}
int main() {
    std::string path;
    while (std::getline(std::cin, path)) {
        std::ifstream file(path); std::stringstream text; text << file.rdbuf();
        std::string grammar; int g = 0, r = 0, b = 0, p = 0; std::string verdict = "refused";
        try { grammar = json_schema_to_grammar(common_json::parse(text.str()), true); } catch (const std::exception &) { grammar.clear(); }
        if (!grammar.empty()) {
            auto * one = llama_grammar_init_impl(nullptr, grammar.c_str(), "root", false, nullptr, 0, nullptr, 0);
            verdict = one ? "ok" : "unparsed";
            if (one) {
                std::ifstream tests(path + ".tests"); std::string line;
                while (std::getline(tests, line)) {
                    auto * copy = llama_grammar_init_impl(nullptr, grammar.c_str(), "root", false, nullptr, 0, nullptr, 0);
                    bool m = match(line.substr(2), copy);
                    llama_grammar_free_impl(copy);
                    if (line[0] == '1') { g++; r += !m; } else { b++; p += m; }
                }
                llama_grammar_free_impl(one);
            }
        }
        std::cout << verdict << "\t" << path << "\t" << g << "\t" << r << "\t" << b << "\t" << p << std::endl;
    }
}

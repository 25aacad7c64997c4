// The mark that ties a test to rows of a table of statements; coverage.py reads it from the tests' JSON
// output.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#define ROWS(...) uib::conformance::mark("rows", {__VA_ARGS__})

namespace uib::conformance {

inline void mark(const char* key, std::initializer_list<const char*> rows) {
    std::string all;
    for (const char* row : rows) {
        if (!all.empty()) all += ' ';
        all += row;
    }
    ::testing::Test::RecordProperty(key, all);
}

}  // namespace uib::conformance

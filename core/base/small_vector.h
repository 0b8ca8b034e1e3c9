#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>
#undef max  // of <windows.h>
namespace pleat {

/// A vector that keeps up to `inside` elements in itself: sizes, strides and options of a call take no memory
/// of the heap, which cost more than what most calls do with them. Used as a std::vector, and becomes one.
template <class T, std::size_t inside>
requires(std::is_trivially_copy_constructible_v<T>&& std::is_trivially_destructible_v<T>) class SmallVector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  SmallVector() noexcept : data_(own_) {}
  explicit SmallVector(std::size_t count, const T& value = T()) : SmallVector() { assign(count, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  template <std::input_iterator Iterator>
  SmallVector(Iterator first, Iterator last) : SmallVector() {
    assign(first, last);
  }
  SmallVector(const std::vector<T>& values) : SmallVector(values.begin(), values.end()) {}
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }
  ~SmallVector() { release(); }

  operator std::vector<T>() const { return {begin(), end()}; }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  const T* cbegin() const noexcept { return begin(); }
  const T* cend() const noexcept { return end(); }
  reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
  reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  /// Throws std::out_of_range.
  T& at(std::size_t i) { return data_[checked(i)]; }
  const T& at(std::size_t i) const { return data_[checked(i)]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  void clear() noexcept { size_ = 0; }
  void resize(std::size_t count, const T& value = T()) {
    const T copy = value;
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) data_[i] = copy;
    size_ = count;
  }
  void assign(std::size_t count, const T& value) {
    const T copy = value;
    clear();
    resize(count, copy);
  }
  /// Of elements that are not this vector's own.
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    if constexpr (std::forward_iterator<Iterator>) {
      const auto count = static_cast<std::size_t>(std::distance(first, last));
      reserve(count);
      std::copy(first, last, data_);
      size_ = count;
    } else {
      for (; first != last; ++first) push_back(*first);
    }
  }
  void push_back(const T& value) { emplace_back(value); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    const T value(std::forward<Args>(args)...);  // which may lie in this vector
    if (size_ == capacity_) grow(2 * capacity_);
    data_[size_++] = value;
    return back();
  }
  void pop_back() { --size_; }

  T* insert(const T* where, const T& value) { return insert(where, std::size_t{1}, value); }
  T* insert(const T* where, std::size_t count, const T& value) {
    const T copy = value;
    T* const gap = open(where, count);
    std::fill_n(gap, count, copy);
    return gap;
  }
  T* insert(const T* where, std::initializer_list<T> values) {
    return insert(where, values.begin(), values.end());
  }
  /// Of elements that are not this vector's own.
  template <std::forward_iterator Iterator>
  T* insert(const T* where, Iterator first, Iterator last) {
    T* const gap = open(where, static_cast<std::size_t>(std::distance(first, last)));
    std::copy(first, last, gap);
    return gap;
  }
  T* erase(const T* where) { return erase(where, where + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = data_ + (first - data_);
    std::copy(last, cend(), to);
    size_ -= static_cast<std::size_t>(last - first);
    return to;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::size_t checked(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("SmallVector::at");
    return i;
  }
  void grow(std::size_t capacity) {
    T* const larger = std::allocator<T>().allocate(capacity);
    std::uninitialized_copy(begin(), end(), larger);
    release();
    data_ = larger;
    capacity_ = capacity;
  }
  void release() noexcept {
    if (data_ != own_) std::allocator<T>().deallocate(data_, capacity_);
  }
  /// Makes room for `count` elements before `where`.
  T* open(const T* where, std::size_t count) {
    const std::ptrdiff_t at = where - data_;
    if (size_ + count > capacity_) grow(std::max(size_ + count, 2 * capacity_));
    std::copy_backward(data_ + at, end(), end() + count);
    size_ += count;
    return data_ + at;
  }
  /// What `other` has, which is empty afterwards.
  void take(SmallVector& other) noexcept {
    if (other.data_ == other.own_) {
      std::copy(other.begin(), other.end(), data_);  // into no less than `inside`
    } else {
      release();
      data_ = std::exchange(other.data_, other.own_);
      capacity_ = std::exchange(other.capacity_, inside);
    }
    size_ = std::exchange(other.size_, 0);
  }

  T* data_;
  std::size_t size_ = 0, capacity_ = inside;
  T own_[inside];
};

}  // namespace pleat

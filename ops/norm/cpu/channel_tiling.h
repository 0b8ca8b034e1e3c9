// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "pleat/core/base/checked_math.h"
#include "pleat/ops/norm/problem.h"

/// How the passes of channel_kernels.h cut a tensor into parts.

namespace pleat::ops::channels {

/// Elements that a tile has at least (where there are so many): it stays in the first- or second-level cache
/// between two readings, and merging its sums costs little beside making them.
inline constexpr int64_t tile_elements = 16384;
/// Elements that the prefetchers of a CPU take as one stream: a page.
inline constexpr int64_t page_elements = 1024;
/// Rows of a tile at least, when a row of many channels is long.
inline constexpr int64_t tile_rows = 64;
/// Images of a tile at least, when planes are small: adding up the lanes of a channel costs as much as a few
/// pixels.
inline constexpr int64_t tile_images = 8;
/// Lanes summed side by side at most. More would only make folding them slower.
inline constexpr int64_t max_lanes = 1024;

/// Planes smaller than this are summed several at a time, `plane_lanes` lanes for each channel.
inline constexpr int64_t small_plane = 128;
inline constexpr int64_t plane_lanes = 8;
/// Lanes of a large plane.
inline constexpr int64_t large_plane_lanes = 64;

/// What belongs to a lane, one of the sums that are made side by side.
enum class LaneOrder : unsigned char {
  pixels,  ///< lane l sums channel l % channels: whole pixels of a channels_last tensor
  plane,   ///< all lanes sum one channel: a large plane
  planes   ///< lane l sums channel l / plane_lanes: small planes of all channels
};

/// A part of a view, and the lanes that it is summed in.
struct Piece {
  int64_t tile;
  int64_t first_image, last_image, first_pixel, last_pixel;
  int64_t first_channel, channels;
  int64_t lanes;
  int64_t values() const {
    return (last_image - first_image) * (last_pixel - first_pixel);
  }  ///< of a channel
};

/// How a view is cut. A tile has all channels of some pixels or images; the planes of a tile of large ones
/// are pieces of their own. Pieces follow each other in memory. With `per_image` a tile stays inside an
/// image.
struct Tiling {
  ChannelView view;
  LaneOrder order;
  int64_t images_per_tile = 1;
  int64_t pixels_per_tile;
  int64_t segments;  ///< tiles along pixels

  Tiling(const ChannelView& of, bool per_image)
      : view(of),
        order(of.channels_last           ? LaneOrder::pixels
              : of.pixels >= small_plane ? LaneOrder::plane
                                         : LaneOrder::planes),
        pixels_per_tile(std::max<int64_t>(of.pixels, 1)) {
    const int64_t channels = std::max<int64_t>(view.channels, 1);
    if (order == LaneOrder::pixels) {
      if (!per_image) {
        // Images are nothing but more pixels here.
        view.pixels *= view.images;
        view.images = 1;
      }
      // Whole rows of lanes in every tile but the last.
      pixels_per_tile = ceil_div(std::max(ceil_div(tile_elements, channels), tile_rows), 64) * 64;
    } else if (order == LaneOrder::plane) {
      pixels_per_tile = tile_elements;
    } else if (!per_image) {
      images_per_tile = std::max(ceil_div(tile_elements, channels * pixels_per_tile), tile_images);
    }
    segments = ceil_div(view.pixels, pixels_per_tile);
  }

  /// Values that a channel has in a tile.
  int64_t values(int64_t tile) const {
    const int64_t image = tile / segments * images_per_tile;
    const int64_t pixel = tile % segments * pixels_per_tile;
    return std::min(images_per_tile, view.images - image) * std::min(pixels_per_tile, view.pixels - pixel);
  }
  int64_t tiles() const { return ceil_div(view.images, images_per_tile) * segments; }
  int64_t pieces() const { return tiles() * (order == LaneOrder::plane ? view.channels : 1); }

  Piece piece(int64_t index) const {
    const int64_t segment = index % segments;
    int64_t block = index / segments;
    Piece piece{};
    piece.channels = view.channels;
    if (order == LaneOrder::plane) {
      piece.first_channel = block % view.channels;
      piece.channels = 1;
      block /= view.channels;
    }
    piece.tile = block * segments + segment;
    piece.first_image = block * images_per_tile;
    piece.last_image = std::min(view.images, piece.first_image + images_per_tile);
    piece.first_pixel = segment * pixels_per_tile;
    piece.last_pixel = std::min(view.pixels, piece.first_pixel + pixels_per_tile);
    if (order == LaneOrder::plane) {
      piece.lanes = large_plane_lanes;
    } else if (order == LaneOrder::planes) {
      piece.lanes = plane_lanes * view.channels;
    } else {
      // So many pixels that they fill vector registers.
      const int64_t pixels = 32 / std::gcd<int64_t>(view.channels, 32);
      piece.lanes = pixels * view.channels <= max_lanes ? pixels * view.channels : view.channels;
    }
    return piece;
  }
};

}  // namespace pleat::ops::channels

use super::*;

fn one(packet_bytes: usize) -> (Pool, Cache, Buffer) {
    let pool = Pool::new(8, packet_bytes).unwrap();
    let mut cache = pool.cache();
    let buffer = cache.take().unwrap();
    (pool, cache, buffer)
}

#[test]
fn a_packet_grows_into_the_room_behind_it_and_no_further() {
    let (pool, _cache, mut buffer) = one(100);
    assert!(buffer.fill(&[7; 114], 14, 3, 5));
    assert_eq!((buffer.link().len(), buffer.packet().len()), (14, 100));
    assert_eq!((buffer.original_len(), buffer.time_nanos()), (117, 5));
    let room = pool.packet_bytes() + TAILROOM;
    assert!(room >= 100 + TAILROOM);
    assert_eq!(buffer.room_mut().len(), room);
    buffer.set_len(120);
    assert_eq!((buffer.frame().len(), buffer.frame_mut().len()), (134, 134));
    buffer.set_len(usize::MAX);
    assert_eq!(buffer.packet_mut().len(), room);
    assert_eq!(buffer.as_ref().len(), HEADROOM + room);
    assert_eq!(buffer.as_mut().len(), HEADROOM + room);
}

#[test]
fn what_has_no_room_is_not_taken() {
    let (pool, _cache, mut buffer) = one(100);
    let longest = pool.packet_bytes();
    assert!(!buffer.fill(&vec![7; longest + 15], 14, 0, 0));
    assert!(!buffer.fill(&[7; 10], 14, 0, 0));
    assert!(!buffer.fill(&[7; 200], HEADROOM + 1, 0, 0));
    assert!(buffer.packet().is_empty() && buffer.link().is_empty());
    assert!(buffer.fill(&vec![7; longest + 14], 14, 0, 0));
}

#[test]
fn what_goes_with_another_has_its_link_and_its_time() {
    let (_pool, mut cache, mut buffer) = one(100);
    let mut other = cache.take().unwrap();
    assert!(other.fill(&[7; 30], 14, 9, 5));
    buffer.go_with(&other);
    buffer.set_len(2);
    assert_eq!((buffer.link(), buffer.packet().len()), (&[7; 14][..], 2));
    assert_eq!((buffer.time_nanos(), buffer.original_len()), (5, 16));
}

#[test]
fn a_header_of_zeros_stands_right_before_the_packet() {
    let (_pool, _cache, mut buffer) = one(100);
    assert!(buffer.fill(&[7; 30], 10, 0, 0));
    let bytes = buffer.behind_zeros(12);
    assert_eq!((bytes.len(), &bytes[..12]), (32, &[0; 12][..]));
    assert_eq!(&bytes[12..], &[7; 20]);
}

#[test]
fn a_frame_begins_on_a_cache_line_and_a_handle_is_a_quarter_of_one() {
    let (pool, _cache, mut buffer) = one(1_514);
    assert!(buffer.set_frame(&[7; 60], 14));
    assert_eq!(buffer.frame().as_ptr().addr() % LINE_BYTES, 0);
    assert_eq!(pool.stride_bytes() / LINE_BYTES % 2, 1);
    assert_eq!(size_of::<Buffer>(), LINE_BYTES / 4);
    assert_eq!(size_of::<Option<Buffer>>(), LINE_BYTES / 4);
    buffer.prefetch();
}

#[test]
fn a_link_header_is_as_long_as_there_is_headroom() {
    let (_pool, _cache, mut buffer) = one(100);
    buffer.link_mut(18).fill(3);
    assert_eq!(buffer.link(), [3; 18]);
    assert_eq!(buffer.link_mut(usize::MAX).len(), HEADROOM);
}

#[test]
fn an_empty_pool_refuses_and_counts() {
    let pool = Pool::new(10, 100).unwrap();
    let mut cache = pool.cache();
    let mut batch = Batch::new(16);
    assert_eq!(cache.fill(&mut batch, 16), 10);
    assert!(cache.take().is_none());
    assert_eq!(cache.counters().refused, 7);
    assert_eq!((batch.len(), batch.room()), (10, 6));
    cache.clear(&mut batch);
    assert_eq!(cache.fill(&mut batch, 4), 4);
    assert_eq!(cache.fill(&mut batch, 99), 6);
    let none = Pool::new(0, 100).unwrap();
    assert!(none.cache().take().is_none());
}

#[test]
fn a_size_that_cannot_be_is_refused() {
    assert!(matches!(Pool::new(1, 1 << 22), Err(PoolError::Size { .. })));
    assert!(matches!(
        Pool::new(1 << 24, 100),
        Err(PoolError::Size { .. })
    ));
    let huge = Pool::new(1, usize::MAX).unwrap_err().to_string();
    assert!(huge.contains("ask for fewer"), "{huge}");
}

#[test]
fn a_dropped_buffer_goes_home_by_itself() {
    let pool = Pool::new(4, 100).unwrap();
    let mut cache = pool.cache();
    let buffers: Vec<Buffer> = std::iter::from_fn(|| cache.take()).collect();
    assert_eq!(buffers.len(), 4);
    drop(cache);
    assert_eq!(pool.outstanding(), 4);
    drop(buffers);
    assert_eq!((pool.outstanding(), pool.late_frees()), (0, 4));
    let mut batch = Batch::new(8);
    assert_eq!(pool.cache().fill(&mut batch, 8), 4);
}

#[test]
fn a_buffer_outlives_its_pool_and_its_cache() {
    let (pool, cache, mut buffer) = one(100);
    drop(pool);
    drop(cache);
    buffer.set_len(100);
    buffer.packet_mut().fill(9);
    let other = std::thread::spawn(move || buffer.packet().iter().all(|byte| *byte == 9));
    assert!(other.join().unwrap());
}

#[test]
fn a_buffer_given_to_another_pool_s_cache_goes_home() {
    let (pool, _cache, buffer) = one(100);
    let (_other_pool, mut other, _) = one(100);
    other.give(buffer);
    assert_eq!(pool.late_frees(), 1);
}

#[test]
fn packets_are_moved_by_what_they_are() {
    let pool = Pool::new(8, 100).unwrap();
    let mut cache = pool.cache();
    let (mut batch, mut other) = (Batch::new(8), Batch::new(2));
    cache.fill(&mut batch, 8);
    for (place, buffer) in batch.packets_mut().iter_mut().enumerate() {
        buffer.set_mark(place as u32);
    }
    let marks = |batch: &Batch| -> Vec<u32> { batch.packets().iter().map(Buffer::mark).collect() };
    batch.move_to(&mut other, |buffer| buffer.mark() % 3 == 1);
    assert_eq!(marks(&other), [1, 4]);
    assert_eq!(marks(&batch), [0, 2, 3, 5, 6, 7]);
    let back = other.pop().unwrap();
    assert!(batch.push(back).is_ok());
    let full = Batch::new(0).push(other.pop().unwrap());
    assert_eq!(full.unwrap_err().mark(), 1);
    cache.give_all(batch.drain_from(1));
    assert_eq!((batch.len(), batch.capacity()), (1, 8));
    cache.clear(&mut batch);
    assert!(batch.is_empty());
}

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
fn a_link_header_is_as_long_as_a_handle_can_say() {
    let (_pool, _cache, mut buffer) = one(100);
    buffer.link_mut(18).fill(3);
    assert_eq!(buffer.link(), [3; 18]);
    assert_eq!(buffer.link_mut(usize::MAX).len(), MOST_LINK);
    assert!(!buffer.set_frame(&[7; 100], MOST_LINK + 1));
    assert!(buffer.set_frame(&[7; 100], MOST_LINK));
}

/// A packet through a tunnel's head and tail: no byte of it moves, whatever
/// is put in front.
#[test]
fn headers_come_off_and_go_on_where_the_packet_lies() {
    let (_pool, _cache, mut buffer) = one(100);
    assert!(buffer.set_frame(&[[1; 14], [2; 14]].concat(), 14));
    let place = buffer.packet().as_ptr();
    assert!(buffer.pull_head(14));
    assert_eq!(
        (buffer.headroom(), buffer.frame()),
        (HEADROOM, &[2; 14][..])
    );
    // A tag longer than before, then a tunnel's headers around all of it.
    buffer.push_link(&[3; 18]).unwrap();
    assert_eq!(
        (buffer.link(), buffer.packet()),
        (&[3; 18][..], &[2; 14][..])
    );
    assert_eq!(buffer.packet().as_ptr(), place);
    buffer.push_head(50).unwrap().fill(4);
    assert_eq!((buffer.link().len(), buffer.packet_len()), (0, 82));
    buffer.set_link_len(14);
    assert_eq!((buffer.link(), buffer.packet_len()), (&[4; 14][..], 68));
    assert!(buffer.pull_head(50 + 18));
    assert_eq!(
        (buffer.packet(), buffer.packet().as_ptr()),
        (&[2; 14][..], place)
    );
    // Less than there is comes off, and no more.
    assert!(!buffer.pull_head(15));
    assert!(buffer.pull_head(14) && buffer.frame().is_empty());
}

#[test]
fn what_has_no_headroom_is_refused_and_named() {
    let (_pool, _cache, mut buffer) = one(100);
    assert!(buffer.set_frame(&[7; 30], 0));
    assert_eq!(
        buffer.push_head(HEADROOM - 10).unwrap().len(),
        HEADROOM - 10
    );
    let refused = buffer.push_link(&[0; 14]).unwrap_err();
    assert_eq!((refused.wanted, refused.free), (14, 10));
    let said = refused.to_string();
    assert!(
        said.contains("14 bytes") && said.contains("10 are free"),
        "{said}"
    );
    assert_eq!(
        (buffer.headroom(), buffer.packet_len()),
        (10, HEADROOM + 20)
    );
    assert!(!buffer.link_in_front::<14, 20>(|_| true));
    assert!(buffer.push_link(&[0; 10]).is_ok());
    assert_eq!(buffer.headroom(), 0);
    assert!(buffer.link_mut(20).len() == 10 && buffer.packet()[..] != [0; 10]);
}

#[test]
fn a_frame_too_far_back_is_not_begun() {
    let (_pool, _cache, mut buffer) = one(2_000);
    assert!(buffer.set_frame(&[7; 2_000], 0));
    assert!(!buffer.pull_head(MOST_START + 1 - HEADROOM));
    assert!(buffer.pull_head(MOST_START - HEADROOM));
    assert_eq!(buffer.packet_len(), 2_000 - (MOST_START - HEADROOM));
    assert!(!buffer.pull_to_packet(1, 10));
}

/// The fields of a word do not reach into one another.
#[test]
fn each_thing_said_of_a_packet_stands_alone() {
    let (_pool, mut cache, mut buffer) = one(100);
    buffer.set_mark(u16::MAX);
    buffer.set_discarded(true);
    assert!(buffer.fill(&[7; 114], 14, 3, 5));
    for _ in 0..2 {
        assert!(buffer.is_discarded() && buffer.mark() == u16::MAX);
        assert_eq!((buffer.link().len(), buffer.packet_len()), (14, 100));
        assert_eq!((buffer.time_nanos(), buffer.original_len()), (5, 117));
        buffer.set_mark(0);
        buffer.set_discarded(false);
        assert!(!buffer.is_discarded() && buffer.mark() == 0);
        assert_eq!((buffer.link().len(), buffer.packet_len()), (14, 100));
        buffer.set_discarded(true);
        buffer.set_mark(u16::MAX);
    }
    cache.give(buffer);
    let again = cache.take().unwrap();
    assert!(!again.is_discarded() && again.mark() == 0 && again.frame().is_empty());
    assert_eq!((again.headroom(), again.time_nanos()), (HEADROOM, 0));
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
    assert!(matches!(
        Pool::new(1 << 20, 1 << 18),
        Err(PoolError::Size { .. })
    ));
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
        buffer.set_mark(place as u16);
    }
    let marks = |batch: &Batch| -> Vec<u16> { batch.packets().iter().map(Buffer::mark).collect() };
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

#[test]
fn slots_of_a_device_s_memory_lie_one_behind_the_other() {
    for slot_bytes in [2_048, 4_096] {
        let pool = Pool::aligned(16, slot_bytes).unwrap();
        assert_eq!(pool.stride_bytes(), slot_bytes);
        assert_eq!(pool.memory_bytes(), 16 * slot_bytes);
        assert!(pool.packet_bytes() >= 1_500);
        let (mut cache, mut batch) = (pool.cache(), Batch::new(16));
        assert_eq!(cache.fill(&mut batch, 16), 16);
        for buffer in batch.packets_mut() {
            let first = buffer.as_ref().as_ptr().addr();
            assert_eq!((first % slot_bytes, buffer.as_ref().len()), (0, slot_bytes));
            assert!(buffer.set_frame(&[7; 1_514], 14));
            // Where a driver puts what comes by XDP.
            assert_eq!(buffer.frame().as_ptr().addr() - first, 256);
        }
        cache.clear(&mut batch);
    }
    let odd = Pool::aligned(16, 3_000).unwrap_err();
    assert!(matches!(odd, PoolError::Size { .. }));
}

#[test]
fn a_number_is_one_pool_s_and_free_again_when_that_is_gone() {
    let pools: Vec<Pool> = (0..50).map(|_| Pool::new(2, 100).unwrap()).collect();
    let mut buffers: Vec<Buffer> = pools
        .iter()
        .filter_map(|pool| pool.cache().take())
        .collect();
    for (at, pool) in pools.iter().enumerate() {
        let takes = |buffer: &Buffer| pool.range().has(&buffer.slot);
        assert_eq!(buffers.iter().position(takes), Some(at));
        assert_eq!(buffers.iter().filter(|buffer| takes(buffer)).count(), 1);
    }
    drop(pools);
    // The pools are there for their buffers, and these go home.
    buffers.truncate(25);
    for buffer in &mut buffers {
        assert!(buffer.fill(&[7; 20], 0, 0, 9) && buffer.time_nanos() == 9);
    }
    drop(buffers);
    // More than there are numbers, one after the other.
    for _ in 0..2 * numbers::MOST_POOLS {
        drop(Pool::new(1, 100).unwrap());
    }
}

//! Groups of next hops: which member has which of the group's buckets.

use memory::mixed;

/// Buckets of a group: a member's share of the flows is exact to one in so
/// many.
pub const BUCKETS: usize = 256;

/// Members of a group at most.
pub const MAX_MEMBERS: usize = 128;

/// A next hop and its part in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The next hop's number.
    pub next_hop: u16,
    /// Its weight, from 1.
    pub weight: u16,
    /// What names it whatever the group: the same in all groups, so that a
    /// member that comes or goes moves only the flows it must.
    pub identity: u64,
}

/// Deals the buckets to the members by weight: each gets its share rounded
/// to the nearest bucket (largest remainders first), and of those the ones
/// it ranks highest by a hash of itself and the bucket. So a flow keeps its
/// path when another member comes or goes, mostly; the kernel's resilient
/// groups want the same. O(buckets × members). None without members.
pub fn buckets(members: &[Member]) -> Option<[u16; BUCKETS]> {
    let members = members.get(..members.len().min(MAX_MEMBERS))?;
    let mut room = shares(members);
    let first = members.first()?;
    let mut dealt = [first.next_hop; BUCKETS];
    for (bucket, dealt) in dealt.iter_mut().enumerate() {
        let open = (0..members.len()).filter(|&at| room[at] > 0);
        let Some(best) = open.max_by_key(|&at| rank(members[at].identity, bucket)) else {
            break;
        };
        room[best] -= 1;
        *dealt = members[best].next_hop;
    }
    Some(dealt)
}

/// How many buckets each member gets; [`BUCKETS`] in all.
fn shares(members: &[Member]) -> Vec<usize> {
    let weight = |member: &Member| u64::from(member.weight.max(1));
    let total: u64 = members.iter().map(weight).sum();
    let part = |member: &Member| weight(member) * BUCKETS as u64;
    let mut shares: Vec<usize> = members
        .iter()
        .map(|member| (part(member) / total.max(1)) as usize)
        .collect();
    let mut left = BUCKETS.saturating_sub(shares.iter().sum());
    let mut by_remainder: Vec<usize> = (0..members.len()).collect();
    by_remainder.sort_by_key(|&at| std::cmp::Reverse(part(&members[at]) % total.max(1)));
    for at in by_remainder {
        if left == 0 {
            break;
        }
        shares[at] += 1;
        left -= 1;
    }
    shares
}

/// A member's rank in a bucket.
fn rank(identity: u64, bucket: usize) -> u64 {
    mixed(identity ^ (bucket as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(next_hop: u16, weight: u16) -> Member {
        let identity = u64::from(next_hop) * 77;
        Member {
            next_hop,
            weight,
            identity,
        }
    }

    fn count(dealt: &[u16], next_hop: u16) -> usize {
        dealt.iter().filter(|&&dealt| dealt == next_hop).count()
    }

    #[test]
    fn shares_follow_the_weights() {
        let dealt = buckets(&[member(1, 1), member(2, 2), member(3, 5)]).unwrap();
        assert_eq!([1, 2, 3].map(|hop| count(&dealt, hop)), [32, 64, 160]);
        let dealt = buckets(&[member(1, 1), member(2, 1), member(3, 1)]).unwrap();
        let mut counts = [1, 2, 3].map(|hop| count(&dealt, hop));
        counts.sort_unstable();
        assert_eq!(counts, [85, 85, 86]);
        assert_eq!(buckets(&[]), None);
        assert_eq!(count(&buckets(&[member(9, 1)]).unwrap(), 9), BUCKETS);
        let many: Vec<Member> = (1..=300).map(|hop| member(hop, 60_000)).collect();
        let dealt = buckets(&many).unwrap();
        assert!((1..=128).all(|hop| count(&dealt, hop) == 2));
    }

    #[test]
    fn a_member_that_goes_moves_few_flows_of_the_others() {
        let four = buckets(&[member(1, 1), member(2, 1), member(3, 1), member(4, 1)]).unwrap();
        let three = buckets(&[member(1, 1), member(2, 1), member(3, 1)]).unwrap();
        let moved = four.iter().zip(&three).filter(|(old, new)| old != new);
        let moved = moved.count();
        // 64 must; hash and threshold of the kernel's plain groups move 128.
        assert!((64..=96).contains(&moved), "{moved}");
    }
}

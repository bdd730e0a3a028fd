//! Who gets a place: shared by user, and root always gets in.

use super::Patience;

/// A place that is taken.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// By whom.
    pub uid: u32,
    /// Who takes nothing of its answer, and may be asked to go.
    pub stalls: bool,
}

/// What becomes of another client.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// There is a place.
    Free,
    /// That of this one.
    InPlaceOf(usize),
    /// None: why.
    Refused(String),
}

/// Whether another client of a user gets a place, and whose. A user that is
/// not root has a share, and leaves root's places free; one that stalls
/// gives its place to another of the same user where the share is used up,
/// to anybody where all places are taken. Root takes any.
pub fn admit(taken: &[Taken], uid: u32, most: &Patience) -> Admission {
    let is_root = uid == 0;
    let of_user = taken.iter().filter(|one| one.uid == uid).count();
    let of_others = taken.iter().filter(|one| one.uid != 0).count();
    let for_others = most.clients.saturating_sub(most.of_root);
    let (is_share_used, are_all_taken) = match is_root {
        true => (false, taken.len() >= most.clients),
        false => (
            of_user >= most.of_user,
            taken.len() >= most.clients || of_others >= for_others,
        ),
    };
    if !is_share_used && !are_all_taken {
        return Admission::Free;
    }
    let goes = |one: &Taken| match is_share_used {
        true => one.uid == uid,
        false => is_root || one.uid != 0,
    };
    let stalled = taken.iter().position(|one| one.stalls && goes(one));
    match stalled {
        Some(at) => Admission::InPlaceOf(at),
        None if is_share_used => Admission::Refused(format!(
            "{of_user} clients of this user are being answered already; ask again, or `--direct`"
        )),
        None => Admission::Refused(format!(
            "{} clients are being answered already; ask again, or `--direct`",
            taken.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(uid: u32, places: usize) -> Vec<Taken> {
        let stalls = false;
        vec![Taken { uid, stalls }; places]
    }

    fn patience() -> Patience {
        Patience {
            clients: 10,
            of_user: 4,
            of_root: 2,
            ..Patience::default()
        }
    }

    #[test]
    fn one_user_takes_no_more_than_a_share() {
        let most = patience();
        assert_eq!(admit(&taken(7, 3), 7, &most), Admission::Free);
        let full = taken(7, 4);
        assert!(matches!(admit(&full, 7, &most), Admission::Refused(_)));
        assert_eq!(admit(&full, 8, &most), Admission::Free);
    }

    #[test]
    fn root_gets_in_whatever_others_take() {
        let most = patience();
        let others = [taken(7, 4), taken(8, 4)].concat();
        assert!(matches!(admit(&others, 9, &most), Admission::Refused(_)));
        assert_eq!(admit(&others, 0, &most), Admission::Free);
        let with_root = [others, taken(0, 2)].concat();
        assert!(matches!(admit(&with_root, 0, &most), Admission::Refused(_)));
    }

    #[test]
    fn one_that_stalls_makes_room_for_its_own_user_first() {
        let most = patience();
        let mut full = [taken(7, 4), taken(8, 4)].concat();
        full[5].stalls = true;
        assert!(matches!(admit(&full, 7, &most), Admission::Refused(_)));
        assert_eq!(admit(&full, 8, &most), Admission::InPlaceOf(5));
        assert_eq!(admit(&full, 9, &most), Admission::InPlaceOf(5));
    }

    #[test]
    fn what_stalls_of_root_s_is_nobody_else_s() {
        let most = patience();
        let mut full = [taken(7, 4), taken(8, 4), taken(0, 2)].concat();
        full[9].stalls = true;
        assert!(matches!(admit(&full, 9, &most), Admission::Refused(_)));
        assert_eq!(admit(&full, 0, &most), Admission::InPlaceOf(9));
    }
}

//! Leases.

use super::cases;
use crate::world::{MINUTE, SECOND, World};
use linchpin_store::{Claim, ErrorKind, Fence, Lease};

cases! {
    a_free_lease_is_claimed
    a_held_lease_is_busy_and_says_who
    its_holder_claims_again_with_the_same_fence
    an_expired_lease_is_free_and_not_early
    a_renewal_keeps_a_lease
    a_lost_lease_is_not_renewed
    a_released_lease_is_free
    a_lost_lease_is_not_released
    fences_grow_with_every_holder
    names_are_separate
    names_are_checked
    one_of_many_claims_wins
    another_process_sees_the_holder
}

async fn held(lease: &dyn Lease, name: &str, owner: &str) -> Fence {
    match lease.claim(name, owner, MINUTE).await.unwrap() {
        Claim::Held(fence) => fence,
        other => panic!("{other:?}"),
    }
}

async fn is_busy(lease: &dyn Lease, name: &str, owner: &str) -> bool {
    matches!(lease.claim(name, owner, MINUTE).await.unwrap(), Claim::Busy { .. })
}

async fn a_free_lease_is_claimed(w: &World) {
    let lease = &**w.store.lease();
    assert_eq!(lease.holder("lease/free").await.unwrap(), None);
    let fence = held(lease, "lease/free", "a").await;
    assert!(fence > Fence::NONE);
    assert_eq!(lease.holder("lease/free").await.unwrap(), Some(("a".into(), fence)));
    assert_eq!(Fence::from_number(fence.number()), fence);
}

async fn a_held_lease_is_busy_and_says_who(w: &World) {
    let lease = &**w.store.lease();
    held(lease, "lease/busy", "a: 1 ü").await;
    w.advance(20 * SECOND).await;
    let Claim::Busy { owner, left } = lease.claim("lease/busy", "b", MINUTE).await.unwrap() else { panic!("held") };
    assert_eq!(owner, "a: 1 ü");
    assert!(left <= 40 * SECOND && left > 30 * SECOND, "{left:?}");
}

async fn its_holder_claims_again_with_the_same_fence(w: &World) {
    let lease = &**w.store.lease();
    let fence = held(lease, "lease/again", "a").await;
    w.advance(MINUTE - SECOND).await;
    assert_eq!(held(lease, "lease/again", "a").await, fence);
    w.advance(MINUTE - SECOND).await;
    assert!(is_busy(lease, "lease/again", "b").await, "the time began anew");
}

async fn an_expired_lease_is_free_and_not_early(w: &World) {
    let lease = &**w.store.lease();
    let old = held(lease, "lease/expires", "a").await;
    w.advance(MINUTE - SECOND).await;
    assert!(is_busy(lease, "lease/expires", "b").await);
    w.advance(2 * SECOND).await;
    assert_eq!(lease.holder("lease/expires").await.unwrap(), None);
    assert!(held(lease, "lease/expires", "b").await > old);
}

async fn a_renewal_keeps_a_lease(w: &World) {
    let lease = &**w.store.lease();
    let fence = held(lease, "lease/renewed", "a").await;
    for _ in 0..3 {
        w.advance(MINUTE - SECOND).await;
        assert!(lease.renew("lease/renewed", fence, MINUTE).await.unwrap());
    }
    assert!(is_busy(lease, "lease/renewed", "b").await);
    assert_eq!(lease.holder("lease/renewed").await.unwrap(), Some(("a".into(), fence)));
}

async fn a_lost_lease_is_not_renewed(w: &World) {
    let lease = &**w.store.lease();
    assert!(!lease.renew("lease/lost", Fence::from_number(1), MINUTE).await.unwrap(), "never held");
    let old = held(lease, "lease/lost", "a").await;
    w.advance(MINUTE + SECOND).await;
    assert!(!lease.renew("lease/lost", old, MINUTE).await.unwrap(), "expired");
    let new = held(lease, "lease/lost", "b").await;
    assert!(!lease.renew("lease/lost", old, MINUTE).await.unwrap(), "held by another");
    assert_eq!(lease.holder("lease/lost").await.unwrap(), Some(("b".into(), new)));
}

async fn a_released_lease_is_free(w: &World) {
    let lease = &**w.store.lease();
    let fence = held(lease, "lease/released", "a").await;
    assert!(lease.release("lease/released", fence).await.unwrap());
    assert!(!lease.release("lease/released", fence).await.unwrap());
    assert!(!lease.renew("lease/released", fence, MINUTE).await.unwrap());
    assert!(held(lease, "lease/released", "b").await > fence);
}

async fn a_lost_lease_is_not_released(w: &World) {
    let lease = &**w.store.lease();
    let old = held(lease, "lease/kept", "a").await;
    w.advance(MINUTE + SECOND).await;
    assert!(!lease.release("lease/kept", old).await.unwrap(), "expired");
    let new = held(lease, "lease/kept", "b").await;
    assert!(!lease.release("lease/kept", old).await.unwrap(), "held by another");
    assert_eq!(lease.holder("lease/kept").await.unwrap(), Some(("b".into(), new)));
}

async fn fences_grow_with_every_holder(w: &World) {
    let mut last = Fence::NONE;
    for round in 0..20 {
        let lease = if round % 2 == 0 { w.store.lease() } else { w.other.lease() };
        let fence = held(&**lease, "lease/grows", if round % 3 == 0 { "a" } else { "b" }).await;
        assert!(fence > last, "round {round}: {fence:?} after {last:?}");
        last = fence;
        match round % 5 {
            0 => w.advance(2 * MINUTE).await,
            _ => assert!(lease.release("lease/grows", fence).await.unwrap()),
        }
    }
}

async fn names_are_separate(w: &World) {
    let lease = &**w.store.lease();
    held(lease, "lease/a", "a").await;
    held(lease, "lease/b", "b").await;
    assert!(is_busy(lease, "lease/a", "b").await);
    assert!(is_busy(lease, "lease/b", "a").await);
}

async fn names_are_checked(w: &World) {
    let lease = &**w.store.lease();
    let fence = Fence::from_number(1);
    let outcomes = [
        lease.claim("lease", "a", MINUTE).await.map(drop),
        lease.renew("lease", fence, MINUTE).await.map(drop),
        lease.release("lease", fence).await.map(drop),
        lease.holder("lease").await.map(drop),
        lease.claim("lease/a", "", MINUTE).await.map(drop),
        lease.claim("lease/zero", "a", std::time::Duration::ZERO).await.map(drop),
    ];
    assert_eq!(outcomes.map(|outcome| outcome.unwrap_err().kind()), [ErrorKind::Invalid; 6]);
}

async fn one_of_many_claims_wins(w: &World) {
    for round in 0..4 {
        let name = format!("lease/race{round}");
        let tasks = (0..16).map(|n| {
            let lease = if n % 2 == 0 { w.store.lease().clone() } else { w.other.lease().clone() };
            let name = name.clone();
            tokio::spawn(async move { lease.claim(&name, &format!("owner {n}"), MINUTE).await.unwrap() })
        });
        let mut held = 0;
        for task in tasks.collect::<Vec<_>>() {
            held += usize::from(matches!(task.await.unwrap(), Claim::Held(_)));
        }
        assert_eq!(held, 1);
    }
}

async fn another_process_sees_the_holder(w: &World) {
    let fence = held(&**w.store.lease(), "lease/seen", "a").await;
    assert_eq!(w.other.lease().holder("lease/seen").await.unwrap(), Some(("a".into(), fence)));
    assert!(is_busy(&**w.other.lease(), "lease/seen", "b").await);
}

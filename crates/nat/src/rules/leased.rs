//! Redirects that inside hosts have asked for: each has an end that can be
//! put off, and filters. For the engine.

use super::{Handle, Redirect, RuleError, Rules, Tuple};
use crate::pcp::options::Filter;

impl Rules {
    /// Adds a redirect that ends at `until_millis`, however often it was
    /// used. Who added it removes it then: it is not swept. O(1).
    pub(crate) fn lease(
        &mut self,
        redirect: Redirect,
        until_millis: u64,
    ) -> Result<Handle, RuleError> {
        let handle = self.insert_rule(redirect, None)?;
        self.extend(handle, until_millis)?;
        Ok(handle)
    }

    /// Puts its end off, or nearer.
    pub(crate) fn extend(&mut self, handle: Handle, until_millis: u64) -> Result<(), RuleError> {
        self.rule_mut(handle)?.until_millis = Some(until_millis);
        Ok(())
    }

    /// Whether a redirect has an end that does not come by its use.
    pub(crate) fn is_lease(&self, handle: Handle) -> bool {
        let lease = self.leased_at(handle.place());
        lease.is_some_and(|(leased, _)| leased == handle)
    }

    /// Who may send in by it; none: everybody.
    pub(crate) fn filters(&self, handle: Handle) -> &[Filter] {
        self.rule(handle).map_or(&[], |rule| &rule.filters)
    }

    /// Says who may send in by it.
    pub(crate) fn set_filters(
        &mut self,
        handle: Handle,
        filters: &[Filter],
    ) -> Result<(), RuleError> {
        self.rule_mut(handle)?.filters = filters.to_vec();
        Ok(())
    }

    /// Whether a redirect lets the remote of a packet in.
    pub(super) fn admits(&self, place: u32, tuple: &Tuple) -> bool {
        let Some((_, rule)) = self.at(place) else {
            return false;
        };
        let admits = |filter: &Filter| filter.admits(tuple.remote, tuple.remote_port);
        rule.filters.is_empty() || rule.filters.iter().any(admits)
    }

    /// The lease that lies at a place.
    pub(crate) fn leased_at(&self, place: u32) -> Option<(Handle, &Redirect)> {
        let (handle, rule) = self.at(place)?;
        let is_lease = rule.until_millis.is_some() && !rule.dynamic;
        is_lease.then_some((handle, &rule.redirect))
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }
}

//! Setters for the optional members of a type: each takes the value and returns it with that member set.

/// Defines `with_…` methods. A line is the documentation, the method, the member, and how it is set: `some` (an
/// optional value of this type), `list` (a list that is empty when absent), `some_list` (an optional list), `meta`.
macro_rules! setters {
    ($type:ident { $($(#[$doc:meta])* $method:ident = $kind:ident $member:ident $(: $value:ty)?;)+ }) => {
        impl $type {
            $(setters!(@$kind $(#[$doc])* $method $member $($value)?);)+
        }
    };
    (@some $(#[$doc:meta])* $method:ident $member:ident $value:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(mut self, $member: impl Into<$value>) -> Self {
            self.$member = Some($member.into());
            self
        }
    };
    (@list $(#[$doc:meta])* $method:ident $member:ident $value:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(mut self, $member: impl IntoIterator<Item = impl Into<$value>>) -> Self {
            self.$member = $member.into_iter().map(Into::into).collect();
            self
        }
    };
    (@some_list $(#[$doc:meta])* $method:ident $member:ident $value:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(mut self, $member: impl IntoIterator<Item = impl Into<$value>>) -> Self {
            self.$member = Some($member.into_iter().map(Into::into).collect());
            self
        }
    };
    (@meta $(#[$doc:meta])* $method:ident $member:ident) => {
        $(#[$doc])*
        ///
        /// # Panics
        /// Panics if the value is JSON other than an object.
        #[must_use]
        pub fn $method(mut self, $member: impl $crate::meta::IntoMeta) -> Self {
            self.$member = Some($member.into_meta());
            self
        }
    };
}

/// A value as its text.
pub(crate) fn raw(value: &serde_json::Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).expect("a JSON value has a text")
}

pub(crate) use setters;
